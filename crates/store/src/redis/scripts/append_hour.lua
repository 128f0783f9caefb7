-- Append to the log of one hour of a line, unless the log has another length than the leader knows.
-- KEYS: FENCE · MINUTES
-- ARGV: epoch · hour (of the day) · length (int, bytes before) · record (bytes) · ttl_ms
-- Reply: nil if the record was appended, otherwise the stored log
-- Atomic: a record is appended once, and only by the current leader.
if is_stale(epoch) then return STALE end
local stored = redis.call('HGET', MINUTES, hour) or ''
if #stored ~= length then return stored end
-- Not allowed at maxmemory: the memory is for tickets.
redis.call('HSET', MINUTES, hour, stored .. record)
redis.call('PEXPIRE', MINUTES, ttl_ms)
return false
