-- A node tells what it has used of one limit in one window, and gets a lease. `grant` in rust/core/src/lease.rs decides the same.
--
-- KEYS: the limit in its window, the epoch. The limit is a hash: `e`, the epoch in which all use is known here, and for each node
-- `n:<node>` as `used:ceiling:until`, where the lease is over at `until` (milliseconds of this store's clock).
-- ARGV: 1 node, 2 epoch, 3 whether all use before is known to the node (0 or 1), 4 limit, 5 used, 6 floor, 7 need, 8 want,
-- 9 milliseconds of a lease, 10 end of the window with a margin (Unix milliseconds), 11 whether the limit is exact (0 or 1),
-- 12 milliseconds from the epoch's beginning in which nothing is granted, then for each node of the past: node, used, whether it
-- has ended (0 or 1).
-- Returns a list that begins with 0 (another epoch is here), 1 (the past is not known) or 2, then ceiling, others, others_used,
-- orphaned, and the nodes that left something.
local epoch = redis.call('GET', KEYS[2])
if epoch ~= ARGV[2] then
  return {0}
end
-- In a cluster, one that took over from the server that counted may not have been told of all.
local server = string.match(epoch, '@(%x+)')
if server and server ~= redis.call('CLUSTER', 'MYID') then
  return {0}
end
-- One that was started again may have lost what it had not written to its disk.
local run = string.match(epoch, '!(%x+)')
if run then
  local told = redis.pcall('INFO', 'server')
  if type(told) == 'string' and run ~= string.match(told, 'run_id:(%x+)') then
    return {0}
  end
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local me = 'n:' .. ARGV[1]
local limit, used, floor = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local need, want, ttl = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])

local function read(text)
  local u, c, t = string.match(text or '0:0:0', '^(%d+):(%d+):(%d+)$')
  return tonumber(u), tonumber(c), tonumber(t)
end
local function write(field, u, c, t)
  redis.call('HSET', KEYS[1], field, string.format('%.0f:%.0f:%.0f', u, c, t))
end

local is_whole = redis.call('HGET', KEYS[1], 'e') == epoch
for at = 13, #ARGV, 3 do
  local field, past, has_ended = 'n:' .. ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2] == '1'
  if field ~= me then
    local u, c, t = read(redis.call('HGET', KEYS[1], field))
    -- What is left of the sum after all known nodes is set once: later it would hold nodes that are known here.
    if field ~= 'n:before' or not is_whole then
      u = math.max(u, past)
      if has_ended and t <= now then
        c = u
      end
      write(field, u, c, t)
    end
  end
end
if ARGV[3] == '1' and not is_whole then
  redis.call('HSET', KEYS[1], 'e', epoch)
  is_whole = true
end

local spare = 0
if ARGV[11] == '0' then
  spare = math.floor(limit / 100)
end
local claimed, others_used, orphaned, nodes = 0, 0, 0, 1
local orphans = {}
local all = redis.call('HGETALL', KEYS[1])
for at = 1, #all, 2 do
  local field = all[at]
  if field ~= me and string.sub(field, 1, 2) == 'n:' then
    local u, c, t = read(all[at + 1])
    local own = math.max(u, c)
    if t > now then
      nodes = nodes + 1
    elseif own > u then
      orphans[#orphans + 1] = string.sub(field, 3)
      local freed = math.min(spare, own - u)
      spare = spare - freed
      own = own - freed
      orphaned = orphaned + (own - u)
    end
    claimed = claimed + own
    others_used = others_used + u
  end
end

local ceiling = floor
local since = tonumber(string.match(epoch, ':(%d+):'))
if is_whole and now >= since + tonumber(ARGV[12]) then
  local pool = math.max(0, math.max(0, limit - claimed) - floor)
  ceiling = floor + math.max(math.min(want, math.floor(pool / (2 * nodes))), math.min(need, pool))
end
write(me, used, ceiling, now + ttl)
-- A node whose clock is far behind must not make this store forget.
redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', math.max(tonumber(ARGV[10]), now + 600000)))
local answer = {is_whole and 2 or 1, ceiling, claimed, others_used, orphaned}
for _, node in ipairs(orphans) do
  answer[#answer + 1] = node
end
return answer
