-- Takes the lock if it is free, also on a full server.
-- KEYS: 1 lock
-- ARGV: 1 value of the holder · 2 milliseconds
-- Reply: 1, or 0 if the lock is taken
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
allow_oom(KEYS[1])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
