-- Return the state of genuine tickets. A user who missed their turn and polls in time returns, ahead of the
-- line. A lost number is reclaimed at its position; the first reclaim starts the recovery hold, during which
-- the line admits no ticket. A number counts as lost only with evidence that the store lost data; otherwise
-- it is of another store.
-- KEYS: line, then all lanes if the item has any, then the current slice of liveness
-- ARGV: now (int, ms) · recovery_hold (int, ms) · generation (known to the process) · new_id (for a
--       partition that has none) · tickets.. (user, number, …)
-- Reply: {tag, a, b} per ticket: 'w' waiting, position (0 if it is not known here) · 'e' entered, admission, expiry ·
--        'x' ended, reason · 'r' of before a restart · 'n' the item was removed · 'f' the item is unknown
--        or {{'lanes', count, 0}} with nothing changed, if KEYS do not name all lanes
-- Atomic: a number is reclaimed once, by one user.
local lacking = lacks_lanes(unpack(redis.call('HMGET', ITEM, 'lanes', 'laneCount')))
if lacking then return {{'lanes', lacking, 0}} end
local has_line = begin_lane(now, true)
local item = load_recovery_state(check_generation(GENERATION, generation, new_id, now))

-- Return the reply for a waiting ticket: its position, or 0 if it is not drawn yet or only pods can compute it.
local function waiting_reply(user, number)
  local first, size, reveal = unpack(redis.call('HMGET', LINE, 'cohortFirst', 'cohortSize', 'reveal'))
  local is_undecided = (reveal or '') ~= '' and (phase(item, now) == 'lobby' or phase(item, now) == 'scheduled')
  local is_drawn = (size or '') ~= '' and number >= tonumber(first) and number < tonumber(first) + tonumber(size)
  if is_undecided or is_drawn then return {'w', 0} end
  return {'w', redis.call('ZCARD', RETURNING) + redis.call('ZRANK', WAITING, user) + 1}
end

-- Serve the ranks of the cohort from the first one again if it has this number, whose rank may have been passed.
local function serve_rank_again(number)
  local first, size = unpack(redis.call('HMGET', LINE, 'cohortFirst', 'cohortSize'))
  if (size or '') == '' or number < tonumber(first) or number >= tonumber(first) + tonumber(size) then return end
  redis.call('HSET', LINE, 'cohortServed', '0')
  unserved = true
end

-- Put a lost number back into the line.
local function reclaim(user, number)
  local n = format_number(number)
  allow_oom(ITEM)
  use_lost_range(item, now)
  redis.call('ZADD', WAITING, n, user)
  serve_rank_again(number)
  redis.call('RPUSH', DEPARTED, '+' .. n .. ':' .. n)
  redis.call('HINCRBY', LINE, 'joined', 1)
  redis.call('SADD', ACTIVE, item.id)
  mark_seen(number)
  if item.recoveringUntil == 0 then
    item.recoveringUntil = now + recovery_hold
    redis.call('HSET', ITEM, 'recoveringUntil', format_number(item.recoveringUntil))
  end
end

-- Return the state of a genuine number that is neither in the line nor entered and has no stored end.
local function resolve_unknown(user, number)
  if number > item.tail then
    if not has_evidence(item, now) then return {'r'} end
    advance_past_lost(item, number, now, recovery_hold)
  end
  -- The end is past its retention; report it as expired.
  if not is_in_lost_range(item, number) then return {'x', 'E'} end
  if not in_reclaim_window(item, now) or is_number_waiting(number) then return {'r'} end
  -- It would be served before the whole cohort. It was not in the lobby when the cohort was fixed.
  if has_unserved_ranks() and number < tonumber(redis.call('HGET', LINE, 'cohortFirst')) then return {'r'} end
  local current = number_in(WAITING, user)
  if has_live_ticket(user) or is_live_elsewhere(user) or (current and current < number) then return {'x', 'R'} end
  if current then
    remove_waiting(user, current)
    end_ticket(user, current, 'R', now)
  end
  reclaim(user, number)
  return waiting_reply(user, number)
end

local function ticket_state(user, number)
  local entered, admitted_at, expires_at = parse_entry(redis.call('HGET', ENTERED, user))
  if entered == number then
    if expires_at > now then return {'e', admitted_at, expires_at} end
    return {'x', 'E'}
  end
  if item.removed ~= '0' then return {'n'} end
  if number < item.validFrom then return {'r'} end
  local missed, deadline = parse_missed(redis.call('HGET', MISSED, user))
  if missed == number then
    if has_missed_turn_ended(deadline, now) then return {'x', 'A'} end
    return_to_line(user, number)
  end
  if number_in(RETURNING, user) == number then return {'w', redis.call('ZRANK', RETURNING, user) + 1} end
  if number_in(WAITING, user) == number then return waiting_reply(user, number) end
  local reason = end_reason_of(number)
  if reason then return {'x', reason} end
  return resolve_unknown(user, number)
end

local replies = {}
for i = TICKETS, #ARGV, 2 do
  replies[#replies + 1] = item.id and has_line and ticket_state(ARGV[i], tonumber(ARGV[i + 1])) or {'f'}
end
commit(now, item.id)
return replies
