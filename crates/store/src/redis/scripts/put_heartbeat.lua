-- Write the heartbeat of a process, and delete those that are too old.
-- KEYS: HEARTBEATS
-- ARGV: process · payload · now (ms) · oldest (int, ms)
-- Reply: none
-- Atomic: a process has one heartbeat, its latest.
local heartbeats = redis.call('HGETALL', HEARTBEATS)
for i = 1, #heartbeats, 2 do
  if tonumber(string.match(heartbeats[i + 1], '^%d+')) < oldest then redis.call('HDEL', HEARTBEATS, heartbeats[i]) end
end
allow_oom(HEARTBEATS)
redis.call('HSET', HEARTBEATS, process, now .. ' ' .. payload)
