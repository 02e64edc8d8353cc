-- A node says that it is there, and learns since when this store counts and who else is there.
--
-- KEYS: the epoch, the nodes by when they were last heard of.
-- ARGV: the node, an epoch of its own for a store that has none, whether the node knew another epoch before (0 or 1), the epoch
-- that it knows, after how many milliseconds a node that is not heard of is gone, 1 for a node that leaves, 1 for a cluster.
-- Returns the epoch and the nodes. An epoch is `id:since:careful`, `since` in milliseconds of this store's clock; a careful one
-- follows a store that was emptied, so nodes may have leases that are not here yet. Behind the id stand, in a cluster, `@` and the
-- server that counts, and `!` and the run of it, where it may tell: one that takes over may not have been told of all, and one that
-- was started again may have lost what it had not written to its disk.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local epoch = redis.call('GET', KEYS[1])
local server = ''
if ARGV[7] == '1' then
  server = '@' .. redis.call('CLUSTER', 'MYID')
end
-- A user of the store may be forbidden to ask.
local told = redis.pcall('INFO', 'server')
local run = type(told) == 'string' and string.match(told, 'run_id:(%x+)')
if run then
  server = server .. '!' .. run
end
if not epoch then
  epoch = string.format('%s%s:%.0f:%s', ARGV[2], server, now, ARGV[3])
  redis.call('SET', KEYS[1], epoch)
elseif server ~= '' and server ~= string.match(epoch, '^[^@!:]*([^:]*)') then
  epoch = string.format('%s%s:%.0f:1', ARGV[2], server, now)
  redis.call('SET', KEYS[1], epoch)
elseif ARGV[3] == '1' and epoch ~= ARGV[4] and string.sub(epoch, -1) == '0' then
  epoch = string.sub(epoch, 1, -2) .. '1'
  redis.call('SET', KEYS[1], epoch)
end
if ARGV[6] == '1' then
  redis.call('ZREM', KEYS[2], ARGV[1])
else
  redis.call('ZADD', KEYS[2], now, ARGV[1])
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - tonumber(ARGV[5]))
local answer = redis.call('ZRANGE', KEYS[2], 0, -1)
table.insert(answer, 1, epoch)
return answer
