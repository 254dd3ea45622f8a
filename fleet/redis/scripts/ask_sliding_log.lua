-- Takes all tokens or none by a log of all that passed in the last window. Calls that are
-- refused do not count.
--
-- KEYS[1]  the log: a sorted set with an element for each call, its score the time (µs), its
--          text the tokens of all calls up to it, in 16 digits, and its own, with a colon. An
--          element before them, of the score -1, has the charges: what passed before the server
--          was told, by 64ths of a window. Its text is
--            <all their tokens>;<end of the last part>;<end of a part (µs)>:<its tokens>,…
-- ARGV     limit (tokens), window (µs), want (tokens; below 0 returns some), keep (ms), owed
--          (tokens that passed, which count as far as the limit has so many left), how long ago
--          they passed (µs)
-- Returns  granted tokens, retry (µs, -1: never), the limit, what is left of it (below 0 if more is
--          used, since others have a greater limit), the time until
--          nothing counts any more (µs)

local key = KEYS[1]
local limit, window, want = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local life = string.format('%.0f', math.max(1, math.ceil(window / 1000) + tonumber(ARGV[4])))

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
redis.call('ZREMRANGEBYSCORE', key, '0', string.format('%.0f', now - window))

-- The tokens up to an element, its own, its time and its text.
local function element(rank)
  local found = redis.call('ZRANGE', key, rank, rank, 'WITHSCORES')
  if #found == 0 then
    return nil, 0, 0, ''
  end
  return tonumber(string.sub(found[1], 1, 16)), tonumber(string.sub(found[1], 18)), tonumber(found[2]), found[1]
end

local function add(total, tokens, at)
  redis.call('ZADD', key, string.format('%.0f', at), string.format('%016.0f:%.0f', total, tokens))
end

-- The charges, and the first and the last element of a call.
local charges, charged, latest, isStale = '', 0, 0, false
local first, tokens, leaves, text = element('0')
if leaves < 0 then
  local total, to, oldest = string.match(text, '^(%d+);(%d+);(%d+):')
  charges, charged, latest, isStale = text, tonumber(total), tonumber(to), tonumber(oldest) <= now - window
  first, tokens, leaves = element('1')
end
local last, own, at = nil, 0, 0
if first then
  last, own, at, text = element('-1')
end

local function addCall(n)
  add((last or 0) + n, n, now)
  last, own, at, text = element('-1')
  if not first then
    first, tokens, leaves = last, own, at
  end
end

-- The charges by time: the end of each part, and its tokens.
local function parts()
  local all = {}
  for to, n in string.gmatch(charges, '(%d+):(%d+)') do
    table.insert(all, {at = tonumber(to), tokens = tonumber(n)})
  end
  return all
end

local function write(all)
  local before, texts = charges, {}
  charges, charged, latest = '', 0, 0
  for i, part in ipairs(all) do
    charged, latest = charged + part.tokens, part.at
    texts[i] = string.format('%.0f:%.0f', part.at, part.tokens)
  end
  if #all > 0 then
    charges = string.format('%.0f;%.0f;', charged, latest) .. table.concat(texts, ',')
    redis.call('ZADD', key, '-1', charges)
  end
  if before ~= '' and before ~= charges then
    redis.call('ZREM', key, before)
  end
end

if at > now then
  -- The clock of the server has jumped back: what is later than now counts as of now.
  for _, later in ipairs(redis.call('ZRANGEBYSCORE', key, '(' .. string.format('%.0f', now), '+inf')) do
    redis.call('ZADD', key, string.format('%.0f', now), later)
  end
  redis.call('PEXPIRE', key, life)
  at, leaves = now, math.min(leaves, now)
end
if isStale or latest > now then
  local kept, later = {}, 0
  for _, part in ipairs(parts()) do
    if part.at > now then
      later = later + part.tokens
    elseif part.at > now - window then
      table.insert(kept, part)
    end
  end
  if later > 0 then
    addCall(later) -- first: a set that becomes empty loses its expiry
    redis.call('PEXPIRE', key, life)
  end
  write(kept)
end

local used = charged
if last then
  used = used + last - first + tokens
end

local owed = math.min(tonumber(ARGV[5]), limit - used)
if owed > 0 then
  local part, passed = math.ceil(window / 64), now - math.min(tonumber(ARGV[6]), window - 1)
  passed = passed + (part - passed % part) % part -- so it counts for no less than a window
  if passed >= now then
    addCall(owed)
  else
    local all, i = parts(), 1
    while i <= #all and all[i].at < passed do
      i = i + 1
    end
    if i > #all or all[i].at > passed then
      table.insert(all, i, {at = passed, tokens = 0})
    end
    all[i].tokens = all[i].tokens + owed
    write(all)
  end
  redis.call('PEXPIRE', key, life)
  used = used + owed
end

local granted, retry = 0, 0
if want < 0 then
  local back = math.min(-want, used)
  used = used - back
  while last and back > 0 do
    local part = math.min(back, own)
    back = back - part
    if part < own then
      add(last - part, own - part, at) -- first, as above
    end
    redis.call('ZREM', key, text)
    last, own, at, text = element('-1')
    if at <= 0 then -- nothing is left, or only charges
      last, at = nil, 0
    end
  end
  if back > 0 then
    local all = parts()
    while back > 0 do
      local part = math.min(back, all[#all].tokens)
      back = back - part
      all[#all].tokens = all[#all].tokens - part
      if all[#all].tokens == 0 then
        table.remove(all)
      end
    end
    write(all)
  end
elseif want == 0 then
  -- only tells
elseif used + want <= limit then
  granted = want
  used = used + want
  add((last or 0) + want, want, now)
  last, at = (last or 0) + want, now
  redis.call('PEXPIRE', key, life)
elseif want > limit then
  retry = -1
else
  -- The first element after which, when it has left, there is room enough, or a charge before it.
  local leave, all, rank = used + want - limit, parts(), math.min(1, charged)
  local function chargedTo(time)
    local sum = 0
    for _, part in ipairs(all) do
      if part.at > time then
        break
      end
      sum = sum + part.tokens
    end
    return sum
  end
  local low, high, before = 0, 0, 0
  if not first or tokens + chargedTo(leaves) < leave then
    low, high, before = 1, redis.call('ZCARD', key) - rank, tokens
  end
  while low < high do
    local middle = math.floor((low + high) / 2)
    local total, _, time = element(string.format('%.0f', rank + middle))
    total = total - first + tokens
    if total + chargedTo(time) >= leave then
      high = middle
    else
      low, before = middle + 1, total
    end
  end
  if low > 0 then
    leaves = select(3, element(string.format('%.0f', rank + low)))
  end
  for _, part in ipairs(all) do
    before = before + part.tokens
    if before >= leave and (leaves == 0 or part.at < leaves) then
      leaves = part.at
      break
    end
  end
  retry = leaves + window - now
end

local reset = 0
if used > 0 then
  reset = math.max(at, latest) + window - now
end
return {granted, retry, limit, limit - used, reset}
