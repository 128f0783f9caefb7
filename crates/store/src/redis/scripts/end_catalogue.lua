-- Notes that a log was read to its end, unless its beginning was lost meanwhile.
-- KEYS: 1 catalogues of the partition
-- ARGV: 1 log
-- Reply: 1, or 0 if nobody has begun
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], 'read')
return 1
