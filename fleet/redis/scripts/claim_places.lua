-- Takes a claim of an instance for places of a limit on calls under way, as places.Ledger does.
--
-- KEYS[1]  the limit: a hash with a field for each instance, "held allowed granted offered deaf want
--          spare seq expires turn target number limit", and "#", "limit settle next born number crowded turn count"
-- ARGV     instance, sequence, limit, held, in use, want, spare, life (µs, 0: it leaves), born, number,
--          channel (its end is the instance), key (what instances are told), young (µs), keep (ms),
--          tenure (µs), offer (µs), final (µs)
-- Returns  late (1 or 0), held, target, crowded, turn (µs), instances, born, number, ends (µs)

local me = ARGV[1]
local function arg(i) return tonumber(ARGV[i]) end
local sequence, limit, claimed, inUse, want, spare = arg(2), arg(3), arg(4), arg(5), arg(6), arg(7)
local life, seen, number, tenure, offer = arg(8), arg(9), arg(10), arg(15), arg(16)

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local match, num = string.match, tonumber
local pattern = '%.0f %.0f %.0f %.0f %.0f %.0f %.0f %.0f %.0f %.0f %.0f %.0f %.0f'
local function text(r)
  return string.format(pattern, r.held, r.allowed, r.granted, r.offered, r.deaf, r.want, r.spare, r.seq, r.expires,
    r.turn, r.target, r.number, r.limit)
end
local fieldsOf = '(%S+) (%S+) (%S+) (%S+) (%S) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) ?(%S*)'
local function record(id, t)
  local held, allowed, granted, offered, deaf, want, spare, seq, expires, turn, target, number, limit = match(t, fieldsOf)
  return {id = id, held = num(held), allowed = num(allowed), granted = num(granted), offered = num(offered), deaf = num(deaf),
    want = num(want), spare = num(spare), seq = num(seq), expires = num(expires), turn = num(turn), target = num(target),
    number = num(number), limit = num(limit) or 0} -- earlier versions wrote no limit
end

local known = redis.call('HMGET', KEYS[1], '#', me)
local meta
if known[1] then
  meta = {match(known[1], '(%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+)')}
  for i = 1, 8 do
    meta[i] = num(meta[i])
  end
end
local r = known[2] and record(me, known[2]) or nil

-- Within this time a lease ends of which the others are told.
local soon = math.floor(life * 2 / 5)

local function answer(crowded, turn, count, born, ends)
  local left = 0
  if turn > now and r.turn >= (turn / tenure - 1) * 65536 then
    left = turn - now
  end
  return {0, r.allowed, r.target, crowded, left, count, born, r.number, ends}
end

if r and sequence <= r.seq then
  return {1, 0, 0, 0, 0, 0, 0, 0, 0}
end

-- A claim that changes nothing only renews the lease.
if r and meta and r.limit == limit and now < meta[3] - soon and life > 0 and claimed == r.held and r.allowed == r.held
  and inUse <= claimed and r.granted == 0 and spare == r.spare and number <= r.number
  and (want == r.want or want > r.target and r.want > r.target) then
  r.seq, r.expires, r.want = sequence, now + life, want
  redis.call('HSET', KEYS[1], me, text(r))
  return answer(meta[6], meta[7], meta[8], meta[4], 0)
end

local settle, born, highest = 0, now, 0
if meta then
  settle, born, highest = meta[2], meta[4], meta[5]
else
  local young = seen ~= 0
  if not young then
    local info = redis.pcall('INFO', 'server')
    local up = type(info) == 'string' and tonumber(string.match(info, 'uptime_in_seconds:(%d+)'))
    young = up and up * 1000000 < arg(13)
  end
  if young then
    settle = now + (life > 0 and life or arg(17))
  end
end

-- The instances whose leases have not ended. What they were granted and have not asked for in time is
-- taken back: they do not know of it.
local all, ended, others = {}, {}, 0
local fields = redis.call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
  if fields[i] ~= '#' then
    local o = record(fields[i], fields[i + 1])
    if o.expires <= now then
      ended[#ended + 1] = o.id
      if o.id == me then
        r = nil
      end
    elseif o.id ~= me then
      others = others + o.held + o.granted
      all[#all + 1] = o
    else
      r = o
    end
  end
end
if not r then
  r = {id = me, granted = 0, turn = -1, target = 0, number = 0}
end
highest = math.max(highest, number)
local mine = limit
r.limit = limit
for _, o in ipairs(all) do
  if o.limit > 0 and (limit == 0 or o.limit < limit) then
    limit = o.limit -- the limit of all is the lowest
  end
end
r.allowed = math.max(0, math.min(claimed + r.granted, math.min(mine, limit) - others))
r.held = math.max(inUse, r.allowed)
r.granted, r.offered, r.deaf, r.want, r.spare, r.seq = 0, 0, 0, want, spare, sequence
r.expires, r.number = now + life, math.max(r.number, number)
local leaves = life == 0 and inUse == 0
if life == 0 then
  r.held, r.allowed, r.want, r.spare, r.limit, r.expires = inUse, inUse, inUse, 0, 0, now + arg(17)
end
if not leaves then
  all[#all + 1] = r
end
local total = 0
for _, o in ipairs(all) do
  if o.granted > 0 and o.offered <= now - offer then
    o.granted, o.deaf, o.dirty = 0, 1, true
  end
  total = total + o.held + o.granted
end
table.sort(all, function(a, b)
  if a.turn ~= b.turn then
    return a.turn < b.turn
  end
  return a.id < b.id
end)

-- Divides places: who wants no more than an even part has what it wants, the others have the same, to
-- within one place. Those that are left over go to the first in the order.
local function fill(wants, places, order)
  local parts, byWant, count = {}, {}, #wants
  for i = 1, count do
    parts[i], byWant[i] = 0, i
  end
  table.sort(byWant, function(a, b) return wants[a] < wants[b] end)
  for _, i in ipairs(byWant) do
    if wants[i] * count > places then
      break
    end
    parts[i] = wants[i]
    places = places - wants[i]
    count = count - 1
  end
  if count == 0 then
    return parts, 0
  end
  local level, left = math.floor(places / count), places % count
  local remaining = left
  for _, i in ipairs(order) do
    if parts[i] ~= wants[i] then
      parts[i] = level
      if remaining > 0 then
        parts[i] = level + 1
        remaining = remaining - 1
      end
    end
  end
  return parts, left
end

-- The targets.
local slot = math.floor(now / tenure)
local begin = slot * 65536
local wants, spares, order, wanted = {}, {}, {}, 0
for i, o in ipairs(all) do
  wants[i], spares[i] = o.want, o.spare
  if o.limit == 0 then
    wants[i], spares[i] = 0, 0
  end
  if o.deaf == 1 then
    wants[i] = math.min(o.want, o.held)
  end
  wanted = wanted + wants[i]
  if o.turn >= begin then
    order[#order + 1] = i
  end
end
for i, o in ipairs(all) do
  if o.turn < begin then
    order[#order + 1] = i
  end
end
local crowded, turn = 0, 0
local parts, left = fill(wants, limit, order)
if wanted <= limit then
  local extra = fill(spares, limit - wanted, order)
  for i, o in ipairs(all) do
    if o.target ~= parts[i] + extra[i] then
      o.target, o.dirty = parts[i] + extra[i], true
    end
  end
else
  if left > 0 then
    turn = (slot + 1) * tenure
  end
  local most = 0
  for i = 1, #all do
    most = math.max(most, parts[i])
  end
  for position, i in ipairs(order) do
    local o = all[i]
    if o.target ~= parts[i] then
      o.target, o.dirty = parts[i], true
    end
    if o.target < wants[i] then
      crowded = crowded + 1
    end
    if left > 0 and parts[i] == most and o.turn < begin then
      o.turn, o.dirty = begin + math.min(position - 1, 65535), true
    end
  end
end

-- What is free goes to those below their targets.
local told = {}
if now >= settle and limit > total then
  local missing, byMissing, any = {}, {}, false
  for i, o in ipairs(all) do
    missing[i], byMissing[i] = math.max(0, o.target - o.held - o.granted), i
    any = any or missing[i] > 0
  end
  if not any then
    byMissing = {} -- nobody: there is nothing to put in order
  end
  table.sort(byMissing, function(a, b)
    if missing[a] ~= missing[b] then
      return missing[a] > missing[b]
    end
    return a < b
  end)
  local handed = fill(missing, limit - total, byMissing)
  for i, o in ipairs(all) do
    if handed[i] > 0 then
      highest = math.max(highest + 1, now)
      o.number, o.dirty = highest, true
      if o == r then
        r.held = r.held + handed[i]
        r.allowed = r.held
      else
        if o.granted == 0 then
          o.offered = now
        end
        o.granted = o.granted + handed[i]
        told[#told + 1] = o.id
      end
    end
  end
end

-- When claims that are the same as before may change something.
local following, offered = 0, nil
for _, o in ipairs(all) do
  if following == 0 or o.expires < following then
    following = o.expires
  end
  if o.granted > 0 then
    offered = math.min(offered or o.offered + offer, o.offered + offer)
  end
end
local ends = 0
if crowded > 0 and following - now <= soon then
  ends = following - now
end
following = math.min(following, offered or following)
if turn ~= 0 then
  following = math.min(following, turn)
end
if settle > now then
  following = math.min(following, settle)
end

if #ended > 0 then
  for _, id in ipairs(ended) do
    redis.call('HDEL', KEYS[1], id)
  end
end
if leaves then
  redis.call('HDEL', KEYS[1], me)
end
r.dirty = not leaves
for _, o in ipairs(all) do
  if o.dirty then
    redis.call('HSET', KEYS[1], o.id, text(o))
  end
end
redis.call('HSET', KEYS[1], '#', string.format('%.0f %.0f %.0f %.0f %.0f %.0f %.0f %.0f', limit, settle, following, born,
  highest, crowded, turn, #all))
redis.call('PEXPIRE', KEYS[1], ARGV[14])

-- A user who may not publish has no notices: instances find out by asking.
for _, id in ipairs(told) do
  redis.pcall('PUBLISH', ARGV[11] .. id, ARGV[12])
end
return answer(crowded, turn, #all, born, ends)
