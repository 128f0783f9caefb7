-- Notes who began the latest term, unless a later one has begun meanwhile.
-- KEYS: 1 the leader
-- ARGV: 1 epoch · 2 name · 3 since when
-- Reply: 1, or 0 if a later term has begun
if tonumber(ARGV[1]) < tonumber(redis.call('HGET', KEYS[1], 'epoch') or '0') then return 0 end
allow_oom(KEYS[1])
redis.call('HSET', KEYS[1], 'epoch', ARGV[1], 'name', ARGV[2], 'since', ARGV[3])
return 1
