-- Records that a partition lost its data, because an operator says so.
-- KEYS: 1 generation
-- ARGV: 1 an id for a partition that has none (text) · 2 now (ms)
-- Reply: 'OK'
-- Atomic: numbers are reclaimed from this call on.
allow_oom(KEYS[1])
redis.call('HSETNX', KEYS[1], 'id', ARGV[1])
redis.call('HSET', KEYS[1], 'lossAt', ARGV[2])
return 'OK'
