-- Store what a pod knows of the origin of a line, and delete reports that are too old.
-- KEYS: ORIGIN
-- ARGV: pod · report (text, its second word is its time in ms) · oldest (int, ms) · max_pods (int) · ttl_ms
-- Reply: 1 if the report was stored, 0 if there are too many pods
-- Atomic: a pod has one report, its latest.
local reports, pods = redis.call('HGETALL', ORIGIN), 0
for i = 1, #reports, 2 do
  local at = tonumber(string.match(reports[i + 1], '^%d+ (%d+)') or '0')
  if at < oldest then redis.call('HDEL', ORIGIN, reports[i])
  elseif reports[i] ~= pod then pods = pods + 1 end
end
if pods >= max_pods then return 0 end
redis.call('HSET', ORIGIN, pod, report)
redis.call('PEXPIRE', ORIGIN, ttl_ms)
return 1
