-- Says that an instance is alive, and tells which are.
--
-- KEYS[1]  the instances: a sorted set of their names, its scores the time at which each said
--          so (µs)
-- KEYS[2]  what the instance has announced
-- KEYS[3]  its session, which tells it from others that have been given its name
-- ARGV     the name of the instance, how long it counts as alive (µs), 1 if the names are
--          wanted, what it announces, its session
-- Returns  the number of instances, 1 if this one was not among them, -1 if its name is taken
--          and nothing was announced, and their names or none

local key, life = KEYS[1], tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local text = string.format('%.0f', now)

-- Who is later than now said so before the clock of the server jumped back: it counts as of
-- now.
for _, name in ipairs(redis.call('ZRANGEBYSCORE', key, '(' .. text, '+inf')) do
  redis.call('ZADD', key, text, name)
end
local isNew = 0
if tonumber(redis.call('ZSCORE', key, ARGV[1]) or 0) <= now - life then
  isNew = 1
elseif (redis.call('GET', KEYS[3]) or ARGV[5]) ~= ARGV[5] then
  return {0, -1, {}}
end
-- A server whose memory is full refuses what comes first in a script, unless it only removes.
local keep = string.format('%.0f', math.ceil(life / 1000))
redis.call('SET', KEYS[2], ARGV[4], 'PX', keep)
redis.call('SET', KEYS[3], ARGV[5], 'PX', keep)
redis.call('ZADD', key, text, ARGV[1])
redis.call('PEXPIRE', key, keep)
redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', now - life))
local names = {}
if ARGV[3] == '1' then
  names = redis.call('ZRANGE', key, 0, -1)
end
return {redis.call('ZCARD', key), isNew, names}
