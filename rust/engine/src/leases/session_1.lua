-- A session of a key is used: it goes on, or enters where the key may have one more.
--
-- KEYS: the key's sessions, a sorted set of their names by when each was used last (milliseconds of this store's clock).
-- ARGV: 1 session, 2 how many the key may have, or 0 for one that is in, 3 milliseconds after which one that is not used is over,
-- 4 milliseconds since it was used.
-- Returns 0 where it is in, else the milliseconds until the oldest is over.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local max, idle = tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now - idle))
if max > 0 and not redis.call('ZSCORE', KEYS[1], ARGV[1]) and redis.call('ZCARD', KEYS[1]) >= max then
  local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
  return math.max(1, tonumber(oldest[2]) + idle - now)
end
redis.call('ZADD', KEYS[1], 'GT', string.format('%.0f', now - tonumber(ARGV[4])), ARGV[1])
redis.call('PEXPIRE', KEYS[1], idle)
return 0
