-- Ends a living ticket: the person leaves, or the order is closed. One that was lost ends, too, so
-- that nobody takes it back later. One whose time is up ends for that reason, also before the leader
-- has noticed: the person was told so.
-- ARGV: 1 now · 2 user · 3 number · 4 reason · 5 'entered' to end entries only, 'any' otherwise ·
--       6 how long a line waits for people it lost · 7 the generation the process knows ·
--       8 an id for a partition that has none · 9 cost of a leave in ms, 0 if it has none ·
--       10 the window of leaves
-- Reply: 'd' ended by this call · 'o' over already, or never inside · 'f' nothing is known of such an item
local now, user, number, reason = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4]
local item = losses(check_generation(GENERATION, ARGV[7], ARGV[8], now))
if not item.id then return 'f' end
allow_oom(ITEM)

local answer, was_admitted = 'd', false
local function took_out()
  local inside, _, expires = parse_entry(redis.call('HGET', ENTERED, user))
  if inside == number then
    was_admitted = true
    if expires <= now then
      answer, reason = 'o', 'E'
    elseif ARGV[5] == 'any' and redis.call('HGET', ITEM, 'guard') ~= 'online' then
      keep_slot(number, expires, now)
    end
    forget_entry(user)
    return true
  end
  if item.removed == '0' and number > item.tail and has_evidence(item, now) then
    lift(item, number, now, tonumber(ARGV[6]))
  end
  if item.removed == '0' and has_lost(item, user, number, now) then
    redis.call('HINCRBY', ITEM, 'joined', 1)
    return true
  end
  if ARGV[5] == 'entered' then
    -- The order was closed after the user had given the entry back.
    redis.call('ZREM', LEFTOVER, txt(number))
    return false
  end
  if tonumber(redis.call('ZSCORE', WAITING, user) or nil) == number then
    depart(user, number)
  elseif tonumber(redis.call('ZSCORE', RETURNING, user) or nil) == number then
    redis.call('ZREM', RETURNING, user)
  else
    local missed, deadline = parse_missed(redis.call('HGET', MISSED, user))
    if missed ~= number then return false end
    if is_missed_over(deadline, now) then answer, reason = 'o', 'A' end
    forget_missed(user)
  end
  return true
end

if not took_out() then return 'o' end
if answer == 'd' then count_leave(user, tonumber(ARGV[9]), tonumber(ARGV[10]), now) end
close(user, number, reason, now, was_admitted)
write_down(now, item.id)
return answer
