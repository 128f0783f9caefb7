-- Take the lock if it is free, also at maxmemory.
-- KEYS: LOCK
-- ARGV: holder (random value of the holder) · ttl_ms
-- Reply: 1, or 0 if the lock is taken
-- Atomic: the lock has at most one holder.
if redis.call('EXISTS', LOCK) == 1 then return 0 end
allow_oom(LOCK)
redis.call('SET', LOCK, holder, 'PX', ttl_ms)
return 1
