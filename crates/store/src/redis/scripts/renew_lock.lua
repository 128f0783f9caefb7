-- Extend the lock if `holder` still holds it.
-- KEYS: LOCK
-- ARGV: holder (random value of the holder) · ttl_ms
-- Reply: 1, or 0 if the lock is free or another holder has it
-- Atomic: a holder never extends the lock of another one.
if redis.call('GET', LOCK) ~= holder then return 0 end
return redis.call('PEXPIRE', LOCK, ttl_ms)
