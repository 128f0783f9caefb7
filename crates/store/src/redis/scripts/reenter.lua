-- Lets a person in again whose pass is proof that they were let in, if the line lost that. The event
-- is written again.
-- ARGV: 1 now · 2 how long a line waits for people it lost · 3 user · 4 number · 5 since when and
--       6 until when they are inside · 7 the generation the process knows · 8 an id for a partition
--       that has none
-- Reply: 1, or 0 if nothing was lost: then what became of the ticket says the rest
local now, hold, user, number = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
local at, expires = tonumber(ARGV[5]), tonumber(ARGV[6])
local item = losses(check_generation(GENERATION, ARGV[7], ARGV[8], now))
if item.removed ~= '0' or number < item.validFrom or redis.call('HEXISTS', ENTERED, user) == 1 then
  return 0
end
allow_oom(ITEM)
if number > item.tail then
  if not has_evidence(item, now) then return 0 end
  lift(item, number, now, hold)
end

if tonumber(redis.call('ZSCORE', WAITING, user) or nil) == number then
  depart(user, number)
elseif tonumber(redis.call('ZSCORE', RETURNING, user) or nil) == number then
  redis.call('ZREM', RETURNING, user)
elseif parse_missed(redis.call('HGET', MISSED, user)) == number then
  forget_missed(user)
elseif has_lost(item, user, number, now) then
  redis.call('HINCRBY', ITEM, 'joined', 1)
  redis.call('SADD', ACTIVE, item.id)
else
  return 0
end
enter(user, txt(number), expires)
write_down(at, item.id)
return 1
