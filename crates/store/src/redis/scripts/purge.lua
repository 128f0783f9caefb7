-- Forgets a reserved line without a trace (its slices of liveness expire by themselves).
-- ARGV: 1 id
-- Reply: 'OK'
redis.call('UNLINK', LEAVES, LEFTOVER, unpack(KEYS, 1, 11))
redis.call('SREM', ACTIVE, ARGV[1])
redis.call('SREM', ITEMS, ARGV[1])
return 'OK'
