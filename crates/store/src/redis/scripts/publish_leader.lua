-- Record which replica leads since when, unless a later term has begun.
-- KEYS: LEADER
-- ARGV: epoch (int) · name · since (ms)
-- Reply: 1, or 0 if a later term has begun
-- Atomic: an earlier term never overwrites a later one.
if epoch < tonumber(redis.call('HGET', LEADER, 'epoch') or '0') then return 0 end
allow_oom(LEADER)
redis.call('HSET', LEADER, 'epoch', format_number(epoch), 'name', name, 'since', since)
return 1
