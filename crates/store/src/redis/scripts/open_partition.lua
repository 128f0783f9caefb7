-- Returns the generation of a partition; a partition without one receives an id.
-- KEYS: 1 generation
-- ARGV: 1 an id for a partition that has none (text)
-- Reply: the id
-- Atomic: two processes that open a partition at the same time get the same id.
allow_oom(KEYS[1])
redis.call('HSETNX', KEYS[1], 'id', ARGV[1])
return redis.call('HGET', KEYS[1], 'id')
