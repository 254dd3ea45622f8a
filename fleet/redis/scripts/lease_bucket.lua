-- Leases tokens of a bucket, which is kept as the time at which it is full.
--
-- KEYS[1]  the bucket: microseconds since the epoch; no value is a full bucket. Behind a point, the burst as time
--          (µs, 14 digits) that counts for all, and until when (ms since the epoch, 13 digits): see
--          burstOfAll in package memory
-- ARGV     limit (tokens per window), window (µs), burst (tokens), want, back, owed, quantum
--          (tokens), queue (µs), seen (when the bucket was full, as the caller knows it), keep (ms)
-- Returns  granted tokens, delay (µs), retry (µs, -1: never), when the bucket is full

local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local want, quantum, queue = tonumber(ARGV[4]), tonumber(ARGV[7]), tonumber(ARGV[8])

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

-- What is too far ahead is cut off: the clock of the server has jumped back. A few tokens that
-- passed on debt are not: of a slow limit, each is worth long.
local jumped = math.max(1000000, cost(16))
local text = redis.call('GET', KEYS[1]) or '0'
local stored = tonumber(string.match(text, '^%d+')) or 0
local full = math.max(now, math.min(math.max(stored, tonumber(ARGV[9])), now + burst + queue + jumped))
full = math.max(now, full - math.min(math.floor(tonumber(ARGV[5]) * window / limit), 1e15))
full = full + cost(tonumber(ARGV[6]))

local need = math.min(want, math.max(1, quantum), math.max(1, fits(burst + queue)))
-- The least burst counts of those by which instances have asked of late: a longer one would leave the others nothing.
local depth, upto, mine, own = 0, 0, burst, math.min(burst, 99999999999999)
if #text > 27 then
  depth, upto = tonumber(string.sub(text, -27, -14)), tonumber(string.sub(text, -13))
end
local wasDepth, wasUpto, ms = depth, upto, math.floor(now / 1000)
if upto > ms and upto <= ms + 1000 and depth < own then
  burst = math.max(depth, math.min(burst, cost(need) - queue))
elseif depth ~= own or upto < ms + 500 then
  depth, upto = own, ms + 1000
end
local room = burst + now - full
local delay = math.max(0, cost(need) - room)
local granted, wait, retry = 0, 0, 0
if want == 0 then
  -- only pays or returns
elseif delay == 0 then
  granted = math.min(want, fits(room))
elseif delay <= queue then
  granted, wait = need, delay
elseif cost(need) > mine + queue then
  retry = -1
else
  retry = delay - queue
end
if granted > 0 then
  full = full + cost(granted)
end

if full ~= stored or depth ~= wasDepth or upto ~= wasUpto then
  if full > now then
    local keep = math.max(1, math.ceil((full - now) / 1000) + tonumber(ARGV[10]))
    redis.call('SET', KEYS[1], string.format('%.0f.%014.0f%013.0f', full, depth, upto), 'PX', string.format('%.0f', keep))
  elseif stored ~= 0 then
    redis.call('DEL', KEYS[1])
  end
end
return {granted, wait, retry, full}
