-- Ends a living ticket: the person leaves, or the order is closed. One that was lost ends, too, so
-- that nobody takes it back later.
-- ARGV: 1 now · 2 user · 3 number · 4 reason · 5 'entered' to end entries only, 'any' otherwise
-- Reply: 1, or 0 if the ticket had ended already
local now, user, number, reason = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4]

local function took_out()
  if parse_entry(redis.call('HGET', ENTERED, user)) == number then
    forget_entry(user)
    return true
  end
  local item = losses()
  if item.removed == '0' and has_lost(item, user, number, now) then
    redis.call('HINCRBY', ITEM, 'joined', 1)
    return true
  end
  if ARGV[5] == 'entered' then return false end
  if tonumber(redis.call('ZSCORE', WAITING, user) or nil) == number then
    depart(user, number)
  elseif tonumber(redis.call('ZSCORE', RETURNING, user) or nil) == number then
    redis.call('ZREM', RETURNING, user)
  elseif parse_missed(redis.call('HGET', MISSED, user)) == number then
    forget_missed(user)
  else
    return false
  end
  return true
end

if not took_out() then return 0 end
close(user, number, reason, now)
write_down(now, redis.call('HGET', ITEM, 'id'))
return 1
