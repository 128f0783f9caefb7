-- Record that a partition lost its data, on an operator's request.
-- KEYS: GENERATION
-- ARGV: new_id (for a partition that has none) · now (ms)
-- Reply: 'OK'
-- Atomic: numbers can be reclaimed from this call on.
allow_oom(GENERATION)
redis.call('HSETNX', GENERATION, 'id', new_id)
redis.call('HSET', GENERATION, 'lossAt', now)
return 'OK'
