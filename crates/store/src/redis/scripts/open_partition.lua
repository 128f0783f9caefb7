-- Return the generation of a partition; a partition without one receives an id.
-- KEYS: GENERATION
-- ARGV: new_id (for a partition that has none)
-- Reply: the id
-- Atomic: two processes that open a partition at the same time get the same id.
allow_oom(GENERATION)
redis.call('HSETNX', GENERATION, 'id', new_id)
return redis.call('HGET', GENERATION, 'id')
