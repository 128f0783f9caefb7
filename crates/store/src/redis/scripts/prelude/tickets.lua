-- Where tickets are (waiting, returning, missed, entered), and how often users leave.

-- Return number, time of admission and expiry (ms) of an entry; nil for none.
local function parse_entry(text)
  if not text then return nil end
  local number, admitted_at, expires_at = string.match(text, '^(%d+):(%d+):(%d+)$')
  return tonumber(number), tonumber(admitted_at), tonumber(expires_at)
end

-- Return number and deadline (ms) of a missed turn; nil for none.
local function parse_missed(text)
  if not text then return nil end
  local number, deadline = string.match(text, '^(%d+):(%d+)$')
  return tonumber(number), tonumber(deadline)
end

-- Return the number with which a user is in the sorted set WAITING or RETURNING, or nil.
local function number_in(queue, user) return tonumber(redis.call('ZSCORE', queue, user) or nil) end

-- Return the lowest waiting number, or nil.
local function first_waiting()
  return tonumber(redis.call('ZRANGE', WAITING, 0, 0, 'WITHSCORES')[2])
end

-- Return the lowest waiting number above the base, or nil.
local function first_above_base(base)
  local from = '(' .. format_number(base)
  return tonumber(redis.call('ZRANGEBYSCORE', WAITING, from, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2])
end

-- Return the lowest rank from `from` on that may wait, or one past the tail. In a drawn cohort this is the rank
-- that is served next, even if its ticket departed. The rank of any other ticket is its number. `item` has the
-- fields tail, cohortFirst, cohortSize, cohortServed and drawSeed.
local function first_rank(item, from)
  local first = tonumber(redis.call('ZRANGEBYSCORE', WAITING, from, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
    or format_number(tonumber(item.tail or '0') + 1))
  if (item.drawSeed or '') == '' then return first end
  local cohort_first, served = tonumber(item.cohortFirst), tonumber(item.cohortServed)
  if served < tonumber(item.cohortSize) and cohort_first >= from and first >= cohort_first then
    return cohort_first + served
  end
  return first
end

-- Return whether the line has a cohort with ranks that were not served; read once per call.
local unserved
local function has_unserved_ranks()
  if unserved == nil then
    local size, served = unpack(redis.call('HMGET', LINE, 'cohortSize', 'cohortServed'))
    unserved = (size or '') ~= '' and tonumber(served) < tonumber(size)
  end
  return unserved
end

-- Return the number at which the line's counter started; read once per call.
local cached_base
local function line_base()
  cached_base = cached_base or tonumber(redis.call('HGET', LINE, 'base') or '0')
  return cached_base
end

-- Remove a waiting ticket. Log its departure if a lower number waits; pods derive other departures from the
-- frontier. Always log a number at or below the base, because a lower number may still be reclaimed, so that
-- pods cannot derive this departure from the front. The same holds while a cohort is served by rank.
local function remove_waiting(user, number)
  redis.call('ZREM', WAITING, user)
  local first = first_waiting()
  if number <= line_base() or (first and first < number) or has_unserved_ranks() then
    redis.call('RPUSH', DEPARTED, format_number(number))
  end
end

local function delete_missed(user)
  redis.call('HDEL', MISSED, user)
  redis.call('ZREM', MISSED_UNTIL, user)
end

-- Remove a ticket that waits, returns or missed its turn. Return whether it was in one of these states, and
-- the deadline (ms) if it missed its turn.
local function remove_from_line(user, number)
  if number_in(WAITING, user) == number then
    remove_waiting(user, number)
    return true
  end
  if number_in(RETURNING, user) == number then
    redis.call('ZREM', RETURNING, user)
    return true
  end
  local missed, deadline = parse_missed(redis.call('HGET', MISSED, user))
  if missed ~= number then return false end
  delete_missed(user)
  return true, deadline
end

-- Return whether a missed turn has ended: its deadline has passed, and the line was able to admit for as
-- long as the user may take to return. Absence does not count while a line is stopped.
local missed_turns_end
local function has_missed_turn_ended(deadline, now)
  if deadline > now then return false end
  if missed_turns_end == nil then
    local stopped, servable_since, keep =
      unpack(redis.call('HMGET', ITEM, 'stopped', 'servableSince', 'missedKeepSeconds'))
    missed_turns_end = stopped ~= '1' and tonumber(servable_since or '0') + tonumber(keep or '0') * 1000 <= now
  end
  return missed_turns_end
end

-- Count a leave against the limit of one user. The score is the time until which their leaves count:
-- each adds `cost` ms to it. Users whose time has passed are removed ten at a time.
local function count_leave(user, cost, window, now)
  if cost == 0 then return end
  local counted = tonumber(redis.call('ZSCORE', LEAVES, user) or '0')
  redis.call('ZADD', LEAVES, format_number(math.max(counted, now) + cost), user)
  redis.call('PEXPIRE', LEAVES, format_number(2 * window))
  local passed = redis.call('ZRANGEBYSCORE', LEAVES, '-inf', now, 'LIMIT', 0, 10)
  if #passed > 0 then redis.call('ZREM', LEAVES, unpack(passed)) end
end
