-- Takes all tokens or none of the present window of the calendar. Calls that are refused do
-- not count.
--
-- KEYS[1]  the window: when it begins and ends (µs since the epoch), and its tokens, with colons
-- ARGV     limit (tokens), window (µs), want (tokens; below 0 returns some), the beginning of
--          the window that tokens are returned to (µs, 0: the present one), keep (ms), owed (tokens
--          that passed, which count as far as the limit has so many left), when windows begin that
--          are not all as long (µs, in order, with commas), "" if all are
-- Returns  granted tokens, retry (µs, -1: never), the limit, what is left of it (below 0 if more is
--          used, since others have a greater limit), the time until
--          nothing counts any more (µs), when the window began (µs)

local limit, window, want = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local returned = tonumber(ARGV[4])

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local begins, ends = math.floor(now / window) * window, nil
for text in string.gmatch(ARGV[7], '%d+') do
  local begin = tonumber(text)
  if begin > now then
    ends = ends or begin
  else
    begins = begin
  end
end
if ARGV[7] == '' then
  ends = begins + window
elseif not ends or now < tonumber(string.match(ARGV[7], '^%d+')) then
  return redis.error_reply('PENSTOCK the clocks of the server and of its caller differ by more than a window')
end
local left = ends - now

-- What was counted in a window of another length, or in one from which the clock has jumped
-- back, counts in the present one until that other one ends.
local count = 0
local text = redis.call('GET', KEYS[1])
if text then
  local _, stored, tokens = string.match(text, '^(%d+):(%d+):(%d+)$')
  if stored and tonumber(stored) > now then
    count = tonumber(tokens)
  end
end

count = count + math.max(0, math.min(tonumber(ARGV[6]), limit - count))

local granted, retry = 0, 0
if want < 0 then
  if returned == 0 or returned == begins then
    count = math.max(0, count + want)
  end
elseif count + want <= limit or want == 0 then
  count = count + want
  granted = want
elseif want > limit then
  retry = -1
else
  retry = left
end

local reset = 0
if count > 0 then
  reset = left
  local present = string.format('%.0f:%.0f:%.0f', begins, ends, count)
  if present ~= text then
    local keep = math.max(1, math.ceil(left / 1000) + tonumber(ARGV[5]))
    redis.call('SET', KEYS[1], present, 'PX', string.format('%.0f', keep))
  end
elseif text then
  redis.call('DEL', KEYS[1])
end
return {granted, retry, limit, limit - count, reset, begins}
