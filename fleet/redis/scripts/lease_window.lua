-- Leases tokens of the present bucket of a window, or of the next one.
--
-- While instances differ in the shape of a window, each counts in a ring of its own shape and
-- reads those of others. A ring is written as
--   <length of a bucket in µs>x<buckets>:<last bucket since the epoch>:<its tokens>,<those before>,…
-- and rings are separated by semicolons.
--
-- KEYS[1]  the rings; no value is an empty window
-- ARGV     limit (tokens), length of a bucket (µs), buckets, want, back (tokens), the beginning
--          of their bucket (µs), owed, quantum (tokens), ahead (µs), rings as the caller knows
--          them, keep (ms), owed of the buckets before the present one, with commas
-- Returns  granted tokens, delay (µs), how long they are valid (µs), retry (µs), the beginning
--          of their bucket (µs), the rings

local limit, length, buckets = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local want, back, owed = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[7])
local ahead = math.min(tonumber(ARGV[9]), length)

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

-- A ring with the counts of its buckets by age: 1 is the next bucket, 2 the present one. Texts
-- has counts as they were read, so that those that stay need not be written anew.
local function new(length, buckets)
  return {length = length, buckets = buckets, next = math.floor(now / length) + 1, counts = {}, texts = {}}
end

local own = new(length, buckets)
local counts = own.counts
local rings = {own}
local known = {[ARGV[2] .. 'x' .. ARGV[3]] = own}

-- Of each bucket the greater count holds. Buckets after the next one tell that the clock of
-- the server has jumped back: all move back so that the last is the next one.
local function merge(text)
  for size, number, last, list in string.gmatch(text, '(%d+)x(%d+):(%d+):([%d,]+)') do
    local name = size .. 'x' .. number
    local ring = known[name]
    size, number = tonumber(size), tonumber(number)
    if not ring and #rings < 4 and size > 0 and number > 0 then
      ring = new(size, number)
      rings[#rings + 1] = ring
      known[name] = ring
    end
    if ring then
      local counts, texts, oldest = ring.counts, ring.texts, ring.buckets + 1
      local age = math.max(1, ring.next - tonumber(last) + 1)
      for text in string.gmatch(list, '%d+') do
        if age > oldest then
          break
        end
        local count = text + 0
        if count > (counts[age] or 0) then
          counts[age], texts[age] = count, text
        end
        age = age + 1
      end
    end
  end
end

local stored = redis.call('GET', KEYS[1])
if stored then
  merge(stored)
end
if ARGV[10] ~= stored then
  merge(ARGV[10])
end

-- The tokens that count in the window whose last bucket is the given one.
local function used(last)
  local tokens = 0
  for age = own.next - last + 1, own.next - last + buckets do
    tokens = tokens + (counts[age] or 0)
  end
  if #rings > 1 then
    local from, to = (last - buckets + 1) * length, (last + 1) * length
    for i = 2, #rings do
      local ring = rings[i]
      for age, count in pairs(ring.counts) do
        local ends = (ring.next - age + 2) * ring.length
        if ends > from and ends - ring.length < to then
          tokens = tokens + count
        end
      end
    end
  end
  return tokens
end

-- The first bucket after the given one whose window has room, if nobody else comes.
local function enough(bucket, need)
  local leaves, total = {}, 0
  if #rings == 1 then
    for age = 1, own.next - bucket + buckets do
      total = total + (counts[age] or 0)
    end
    while limit - total < need do
      bucket = bucket + 1
      total = total - (counts[own.next - bucket + buckets + 1] or 0)
    end
    return bucket
  end
  for _, ring in ipairs(rings) do
    for age, count in pairs(ring.counts) do
      local at = math.ceil((ring.next - age + 2) * ring.length / length) + buckets - 1
      if at > bucket and count > 0 then
        leaves[#leaves + 1] = {at, count}
        total = total + count
      end
    end
  end
  table.sort(leaves, function(a, b) return a[1] < b[1] end)
  for _, leave in ipairs(leaves) do
    if limit - total >= need then
      break
    end
    total = total - leave[2]
    bucket = leave[1]
  end
  return bucket
end

if back > 0 then
  local age = own.next - tonumber(ARGV[6]) / length + 1
  if counts[age] then
    counts[age], own.texts[age] = math.max(0, counts[age] - back), nil
  end
end
if owed > 0 then
  counts[2], own.texts[2] = (counts[2] or 0) + owed, nil
end
local before = 3
for text in string.gmatch(ARGV[12], '%d+') do
  if text ~= '0' and before <= buckets + 1 then
    counts[before], own.texts[before] = (counts[before] or 0) + text, nil
  end
  before = before + 1
end

local granted, delay, valid, retry, begins = 0, 0, 0, 0, 0
if want > 0 then
  local bucket, age, taken = own.next, 1, used(own.next)
  local left = own.next * length - now
  if left > ahead then
    bucket, age, left = own.next - 1, 2, 0
    if counts[1] or #rings > 1 then
      taken = math.max(taken, used(bucket))
    else
      taken = taken + (counts[buckets + 1] or 0) -- no token of the next bucket, and the oldest
    end
  end
  granted = math.min(want, limit - taken)
  if granted > 0 then
    counts[age], own.texts[age] = (counts[age] or 0) + granted, nil
    delay = left
    begins = bucket * length
    valid = begins + length - now
  else
    granted = 0
    local need = math.min(want, math.max(1, tonumber(ARGV[8])), limit)
    retry = enough(bucket, need) * length - ahead - now
  end
end

-- What is stored has no buckets that are empty at either end, and no empty rings.
local written, ends = {}, 0
for _, ring in ipairs(rings) do
  local tokens, texts, first, last = ring.counts, ring.texts, nil, nil
  for age = 1, ring.buckets + 1 do
    local count = tokens[age] or 0
    if count > 0 then
      first = first or age
      last = age
      texts[age] = texts[age] or string.format('%.0f', count)
    else
      texts[age] = '0'
    end
  end
  if first then
    local newest = ring.next - first + 1
    written[#written + 1] = string.format('%.0fx%.0f:%.0f:', ring.length, ring.buckets, newest)
      .. table.concat(texts, ',', first, last)
    ends = math.max(ends, (newest + ring.buckets) * ring.length)
  end
end
local state = table.concat(written, ';')
if state ~= (stored or '') then
  if state == '' then
    redis.call('DEL', KEYS[1])
  else
    local keep = math.max(1, math.ceil((ends - now) / 1000) + tonumber(ARGV[11]))
    redis.call('SET', KEYS[1], state, 'PX', string.format('%.0f', keep))
  end
end
return {granted, delay, valid, retry, begins, state}
