-- Takes all tokens or none by a log of all that passed in the last window. Calls that are
-- refused do not count.
--
-- KEYS[1]  the log: a sorted set with an element for each call, its score the time (µs), its
--          text the tokens of all calls up to it, in 16 digits, and its own, with a colon
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
redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', now - window))

-- The tokens up to an element, its own, and its time.
local function element(rank)
  local found = redis.call('ZRANGE', key, rank, rank, 'WITHSCORES')
  if #found == 0 then
    return nil, 0, 0
  end
  return tonumber(string.sub(found[1], 1, 16)), tonumber(string.sub(found[1], 18)), tonumber(found[2]), found[1]
end

local function add(total, tokens, at)
  redis.call('ZADD', key, string.format('%.0f', at), string.format('%016.0f:%.0f', total, tokens))
end

local last, own, at, text = element('-1')
if last and at > now then
  -- The clock of the server has jumped back: what is later than now counts as of now.
  local from = '(' .. string.format('%.0f', now)
  for _, later in ipairs(redis.call('ZRANGEBYSCORE', key, from, '+inf')) do
    redis.call('ZADD', key, string.format('%.0f', now), later)
  end
  redis.call('PEXPIRE', key, life)
  at = now
end
local used, first, tokens, leaves = 0, element('0')
if last then
  used = last - first + tokens
end

-- What passed before now comes before the elements that are later, but for more than 100 of them:
-- then it counts for longer, and as many tokens less.
local owed = math.min(tonumber(ARGV[5]), limit - used)
if owed > 0 then
  local passed, total = now - math.min(tonumber(ARGV[6]), window - 1), last or 0
  local later = redis.call('ZRANGE', key, '-101', '-1', 'WITHSCORES')
  local from = #later + 1
  while from > 1 and tonumber(later[from - 1]) > passed do
    if #later - from == 199 then
      local at = tonumber(later[from - 1])
      owed = math.floor(owed * (passed + window - now) / (at + window - now))
      passed = at
      break
    end
    from = from - 2
    total = tonumber(string.sub(later[from], 1, 16)) - tonumber(string.sub(later[from], 18))
  end
  if owed > 0 then
    for i = from, #later, 2 do
      redis.call('ZREM', key, later[i])
    end
    add(total + owed, owed, passed)
    for i = from, #later, 2 do
      add(tonumber(string.sub(later[i], 1, 16)) + owed, tonumber(string.sub(later[i], 18)), tonumber(later[i + 1]))
    end
    redis.call('PEXPIRE', key, life)
    used = used + owed
  end
  last, own, at, text = element('-1')
  first, tokens, leaves = element('0')
end

local granted, retry = 0, 0
if want < 0 then
  local back = -want
  while last and back > 0 do
    local part = math.min(back, own)
    back = back - part
    used = used - part
    if part < own then
      add(last - part, own - part, at) -- first: a set that becomes empty loses its expiry
    end
    redis.call('ZREM', key, text)
    last, own, at, text = element('-1')
  end
elseif want == 0 then
  -- only tells
elseif used + want <= limit then
  granted = want
  used = used + want
  at = now
  add((last or 0) + want, want, now)
  last = (last or 0) + want
  redis.call('PEXPIRE', key, life)
elseif want > limit then
  retry = -1
else
  -- The first element after which, when it has left, there is room enough.
  local low, high = 0, 0
  if first < last + want - limit then
    low, high = 1, redis.call('ZCARD', key) - 1
  end
  while low < high do
    local middle = math.floor((low + high) / 2)
    if element(string.format('%.0f', middle)) >= last + want - limit then
      high = middle
    else
      low = middle + 1
    end
  end
  if low > 0 then
    leaves = select(3, element(string.format('%.0f', low)))
  end
  retry = leaves + window - now
end

local reset = 0
if last then
  reset = at + window - now
end
return {granted, retry, limit, limit - used, reset}
