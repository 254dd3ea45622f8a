-- Takes all tokens or none of a balance, which is only recharged. Calls that are refused do not
-- count.
--
-- KEYS[1]  the balance: the tokens that it has less than the limit, below 0 if it has more. It
--          has no end
-- ARGV     limit (the tokens that it has at first), want (tokens; below 0 adds some), owed (tokens
--          that passed, which are taken in any case)
-- Returns  granted tokens, the limit, what is left (below 0 if more is owed)

local limit, want = tonumber(ARGV[1]), tonumber(ARGV[2])
local text = redis.call('GET', KEYS[1])
local used = tonumber(text or '0') + tonumber(ARGV[3])

local granted = 0
if want < 0 then
  used = used + want
elseif used + want <= limit then
  used = used + want
  granted = want
end

local left = limit - used
if math.abs(left) > 1099511627776 then
  return redis.error_reply('PENSTOCK a balance must have at most 1099511627776 tokens')
end
if used == 0 then
  if text then
    redis.call('DEL', KEYS[1])
  end
else
  local present = string.format('%.0f', used)
  if present ~= text then
    redis.call('SET', KEYS[1], present)
  end
end
return {granted, limit, left}
