-- Store an operator under a name that no other operator has.
-- KEYS: OPERATORS
-- ARGV: name · record · max_operators (int)
-- Reply: 0 stored, 1 the name is taken, 2 the limit is reached
-- Atomic: of two operators with one name, one is stored.
if redis.call('HEXISTS', OPERATORS, name) == 1 then return 1 end
if redis.call('HLEN', OPERATORS) >= max_operators then return 2 end
allow_oom(OPERATORS)
redis.call('HSET', OPERATORS, name, record)
return 0
