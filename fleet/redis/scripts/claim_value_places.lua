-- Takes and returns places of one value, of a limit on the calls under way of each value.
--
-- KEYS[1]  the places of the value: a hash with a field for each instance, "held seq limit"
-- KEYS[2]  the instances: a hash with a field for each, until when it lives (µs), and "#", "settle
--          born number"
-- ARGV     instance, sequence, 1 if there is a value (else the instance only says that it lives),
--          limit, in use, want, life (µs, 0: it leaves), born, number, young (µs), keep (ms), final (µs)
-- Returns  late (1 or 0), new (1 or 0), granted (negative: of those in use, so many are too many), born, number

local me = ARGV[1]
local function arg(i) return tonumber(ARGV[i]) end
local sequence, limit, inUse, want, life = arg(2), arg(4), arg(5), arg(6), arg(7)
local seen = arg(8)

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local known = redis.call('HMGET', KEYS[2], '#', me)
local settle, born, number = 0, now, 0
local dirty = not known[1]
if known[1] then
  local a, b, c = string.match(known[1], '(%S+) (%S+) (%S+)')
  settle, born, number = tonumber(a), tonumber(b), tonumber(c)
  if arg(9) > number and now >= settle then -- the last of what it knew is lost, as after a failover
    settle, born = now + (life > 0 and life or arg(12)), now
  end
else
  local young = seen ~= 0
  if not young then
    local info = redis.pcall('INFO', 'server')
    local up = type(info) == 'string' and tonumber(string.match(info, 'uptime_in_seconds:(%d+)'))
    young = up and up * 1000000 < arg(10)
  end
  if young then
    settle = now + (life > 0 and life or arg(12))
  end
end
if arg(9) > number then
  number, dirty = arg(9), true
end
local isNew = 0
if not known[2] or tonumber(known[2]) <= now then
  isNew = 1
end
local function keep()
  redis.call('HSET', KEYS[2], '#', string.format('%.0f %.0f %.0f', settle, born, number))
end

if ARGV[3] ~= '1' then
  keep()
  local all = redis.call('HGETALL', KEYS[2])
  for i = 1, #all, 2 do
    if all[i] ~= '#' and tonumber(all[i + 1]) <= now then
      redis.call('HDEL', KEYS[2], all[i])
    end
  end
  if life > 0 then
    redis.call('HSET', KEYS[2], me, string.format('%.0f', now + life))
  elseif inUse > 0 then
    redis.call('HSET', KEYS[2], me, string.format('%.0f', now + arg(12)))
  else
    redis.call('HDEL', KEYS[2], me)
  end
  redis.call('PEXPIRE', KEYS[2], ARGV[11])
  return {0, isNew, 0, born, number}
end

if isNew == 1 then
  redis.call('HSET', KEYS[2], me, string.format('%.0f', now + life))
end

-- What the others have. What those have that do not live is taken from them, unless the claim is late: it changes
-- nothing.
local fields = redis.call('HGETALL', KEYS[1])
local others, had, dead = 0, false, {}
for i = 1, #fields, 2 do
  local held, seq, by = string.match(fields[i + 1], '(%S+) (%S+) (%S+)')
  if fields[i] == me then
    if sequence <= tonumber(seq) then
      if dirty then
        keep()
      end
      return {1, 0, 0, 0, 0}
    end
    had = true
  else
    local ends = redis.call('HMGET', KEYS[2], fields[i])[1] -- the permissions that are documented have no HGET
    if ends and tonumber(ends) > now then
      others = others + held
      limit = math.min(limit, tonumber(by))
    else
      dead[#dead + 1] = fields[i]
    end
  end
end
for _, of in ipairs(dead) do
  redis.call('HDEL', KEYS[1], of)
end

local granted = math.max(-inUse, math.min(want, limit - others - inUse))
if now < settle then
  granted = math.min(0, granted)
end
local held = inUse + math.max(0, granted)
if granted > 0 then
  number, dirty = math.max(number + 1, now), true
end
if dirty then
  keep()
  if not known[1] then
    redis.call('PEXPIRE', KEYS[2], ARGV[11])
  end
end
if held > 0 then
  redis.call('HSET', KEYS[1], me, string.format('%.0f %.0f %.0f', held, sequence, arg(4)))
  redis.call('PEXPIRE', KEYS[1], ARGV[11])
elseif had then
  redis.call('HDEL', KEYS[1], me)
end
return {0, isNew, granted, born, number}
