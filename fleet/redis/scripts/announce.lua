-- Says that an instance is alive, and tells which are.
--
-- KEYS[1]  the instances: a sorted set of their names, its scores the time at which each said
--          so (µs)
-- ARGV     the name of the instance, how long it counts as alive (µs), 1 if the names are
--          wanted
-- Returns  the number of instances, 1 if this one was not among them, and their names or none

local key, life = KEYS[1], tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local text = string.format('%.0f', now)

-- Who is later than now said so before the clock of the server jumped back: it counts as of
-- now.
for _, name in ipairs(redis.call('ZRANGEBYSCORE', key, '(' .. text, '+inf')) do
  redis.call('ZADD', key, text, name)
end
redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', now - life))
local isNew = 0
if not redis.call('ZSCORE', key, ARGV[1]) then
  isNew = 1
end
redis.call('ZADD', key, text, ARGV[1])
redis.call('PEXPIRE', key, string.format('%.0f', math.ceil(life / 1000)))
local names = {}
if ARGV[3] == '1' then
  names = redis.call('ZRANGE', key, 0, -1)
end
return {redis.call('ZCARD', key), isNew, names}
