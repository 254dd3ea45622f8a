-- Takes all tokens or none: of a token bucket, or by the generic cell rate algorithm, which
-- may grant tokens for later. A bucket is kept as the time at which it is full.
--
-- KEYS[1]  the bucket, as in lease_bucket
-- ARGV     limit (tokens per window), window (µs), burst (tokens), want (tokens; below 0
--          returns some), wait (µs, how far ahead tokens may be granted), keep (ms), owed (tokens
--          that passed, which count as far as they fit)
-- Returns  granted tokens, delay (µs), retry (µs, -1: never), the most tokens that can pass
--          at once, those that could pass now, the time until the bucket is full (µs)

local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local want, wait = tonumber(ARGV[4]), tonumber(ARGV[5])

local function cost(n)
  return math.min(math.ceil(n * window / limit), 1e15)
end

-- The greatest number of tokens that cost no more than room.
local function fits(room)
  if room <= 0 then
    return 0
  end
  local n = math.min(math.floor(room * limit / window), 1099511627776)
  if cost(n + 1) <= room then
    return n + 1
  elseif cost(n) > room then
    return n - 1
  end
  return n
end

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local burst = cost(tonumber(ARGV[3]))

-- What is too far ahead is cut off: the clock of the server has jumped back.
local text = redis.call('GET', KEYS[1]) or '0'
local stored = tonumber(string.match(text, '^%d+')) or 0
local full = math.max(now, math.min(stored, now + burst + wait + 1000000))

local owed = tonumber(ARGV[7])
if owed > 0 then
  full = full + cost(math.min(owed, fits(burst + wait + now - full)))
end

-- The least burst counts of those by which instances have asked of late: a longer one would leave the others nothing.
local depth, upto = 0, 0
if #text > 27 then
  depth, upto = tonumber(string.sub(text, -27, -14)), tonumber(string.sub(text, -13))
end
local wasDepth, wasUpto, ms = depth, upto, math.floor(now / 1000)
local mine = math.max(0, burst - cost(1)) -- so that calls come in turn, whatever each costs
local own = math.min(mine, 99999999999999)
if upto > ms and upto <= ms + 1000 and depth < own then
  mine = depth
elseif depth ~= own or upto < ms + 500 then
  depth, upto = own, ms + 1000
end

local granted, delay, retry = 0, 0, 0
if want < 0 then
  full = math.max(now, full - math.min(math.floor(-want * window / limit), 1e15))
else
  local price = cost(want)
  delay = math.max(0, price - (math.min(burst, mine + price) + now - full))
  if delay <= wait then
    granted = want
    full = full + price
  else
    retry = delay - wait
    delay = 0
    if price > burst + wait then
      retry = -1
    end
  end
end

if full ~= stored or depth ~= wasDepth or upto ~= wasUpto then
  if full > now then
    local keep = math.max(1, math.ceil((full - now) / 1000) + tonumber(ARGV[6]))
    redis.call('SET', KEYS[1], string.format('%.0f.%014.0f%013.0f', full, depth, upto), 'PX', string.format('%.0f', keep))
  elseif stored ~= 0 then
    redis.call('DEL', KEYS[1])
  end
end
return {granted, delay, retry, fits(burst), fits(math.min(burst, mine + cost(1)) + now - full), full - now}
