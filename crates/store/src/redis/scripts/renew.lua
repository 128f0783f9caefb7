-- Holds the lock for another while, if it is still this holder's.
-- KEYS: 1 the lock
-- ARGV: 1 what the holder wrote into it · 2 milliseconds
-- Reply: 1, or 0 if it is somebody else's or nobody's
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
