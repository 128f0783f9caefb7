-- Admissions and ends of tickets: collected during a call, written by commit() together with their events.

-- Ends of this call: events as text; members and scores for the set of ends; counts by reason; reasons by
-- number. Commit writes ends before admissions, so that a user whose old ticket ends and who is admitted
-- again in the same call appears in that order.
local ended_events, ended_index, ended_by_reason, ended_in_call = {}, {}, {}, {}
-- Admissions of this call: user, number as text, user, number, … All have the same expiry.
local new_entries, new_entries_expire_at = {}, nil

-- Return the lowest number whose end is kept for WAITING_END_RETENTION_MS only; math.huge for none. A ticket
-- whose end is deleted must never be reclaimed, so the ends of all numbers that are in a lost range or may
-- get into one are kept for ENDED_RETENTION_MS: up to the base, while a reclaim window is open, and as long
-- as a loss may still extend the range that begins with the line (see extends_lost_range()). Later losses
-- begin above all numbers issued before.
local short_retention_start
local function short_retention_from(now)
  if not short_retention_start then
    local base, reclaim_until, lost_to, clock_base =
      unpack(redis.call('HMGET', LINE, 'base', 'takeBackUntil', 'lostTo', 'clockBase'))
    if clock_base ~= base then lost_to = base end
    local lost_at = math.floor(tonumber(lost_to or '0') / NUMBERS_PER_MS)
    local extends_until = lost_at + ENDED_RETENTION_MS - RECLAIM_WINDOW_MS / 2
    local settled = now >= math.max(tonumber(reclaim_until or '0'), extends_until)
    short_retention_start = settled and tonumber(base or '0') + 1 or math.huge
  end
  return short_retention_start
end

-- End a ticket that the caller has removed from the line or the entry set. `was_admitted` distinguishes
-- leaves of entries from leaves of waiting tickets. The score of an end with the short retention is earlier
-- by the difference of both retentions, so that expire.lua deletes both kinds with one limit.
local function end_ticket(user, number, reason, now, was_admitted)
  local n, score = format_number(number), now
  local from_line = reason == 'A' or reason == 'R' or (reason == 'L' and not was_admitted)
  if from_line and number >= short_retention_from(now) then
    score = now - ENDED_RETENTION_MS + WAITING_END_RETENTION_MS
  end
  ended_events[#ended_events + 1] = user .. ' ' .. n .. ' ' .. reason
  ended_index[#ended_index + 1] = score
  ended_index[#ended_index + 1] = n .. ':' .. reason
  ended_by_reason[reason] = (ended_by_reason[reason] or 0) + 1
  ended_in_call[n] = reason
end

-- Return how a number ended, or nil if no end is stored.
local function end_reason_of(number)
  local n, reasons = format_number(number), {'E', 'C', 'L', 'A', 'R'}
  if ended_in_call[n] then return ended_in_call[n] end
  local ends = redis.call('ZMSCORE', ENDED, n .. ':E', n .. ':C', n .. ':L', n .. ':A', n .. ':R')
  for i, reason in ipairs(reasons) do
    if ends[i] then return reason end
  end
  return nil
end

-- Admit tickets (user, number as text, user, number, …) that the caller has removed from the line. Numbers
-- are text, because formatting one costs more than the rest of its admission.
local function admit_all(tickets, expires_at)
  new_entries_expire_at = expires_at
  if #new_entries == 0 then
    new_entries = {unpack(tickets)}
    return
  end
  for _, word in ipairs(tickets) do new_entries[#new_entries + 1] = word end
end

-- Admit one ticket.
local function admit(user, n, expires_at)
  local count = #new_entries
  new_entries[count + 1], new_entries[count + 2] = user, n
  new_entries_expire_at = expires_at
end

-- Return the number of entries, those of this call included.
local function entry_count() return redis.call('HLEN', ENTERED) + #new_entries / 2 end

-- Write the entries of this call, and use up new_entries: each number becomes number:admission:expiry. The
-- expiry is stored per group of at most ENTRY_GROUP users, so that a group costs one element of a sorted set.
-- A user whose entry ends earlier stays in the group, and expire.lua skips that user. See
-- docs/adr/014-entry-groups.md.
local function write_entries(now)
  local expires_at = format_number(new_entries_expire_at)
  local users, times = {}, ':' .. format_number(now) .. ':' .. expires_at
  for i = 1, #new_entries, 2 do
    users[(i + 1) / 2] = new_entries[i]
    new_entries[i + 1] = new_entries[i + 1] .. times
  end
  redis.call('HSET', ENTERED, unpack(new_entries))
  for i = 1, #users, ENTRY_GROUP do
    local group = table.concat(users, ' ', i, math.min(i + ENTRY_GROUP - 1, #users))
    redis.call('ZADD', ENTERED_UNTIL, expires_at, group)
  end
end

-- Append `count` events to the outbox: as one record with these fields, and with the lane and its name if it is
-- not the standard one.
local function write_record(now, id, epoch, count, ...)
  -- A release that does not count admissions may have left events: count all of them as admissions.
  redis.call('SET', OUTBOX_ADMISSIONS, redis.call('GET', OUTBOX_EVENTS) or '0', 'NX')
  redis.call('INCRBY', OUTBOX_EVENTS, count)
  local fields = {'i', id, 't', format_number(now), 'n', count, 'p', epoch, ...}
  if LANE > 0 then
    local names = {}
    for name in string.gmatch(redis.call('HGET', ITEM, 'lanes') or '', '([^ :]+):') do names[#names + 1] = name end
    fields[#fields + 1], fields[#fields + 2] = 'k', LANE
    fields[#fields + 1], fields[#fields + 2] = 'kn', names[LANE] or ''
  end
  redis.call('XADD', OUTBOX, '*', unpack(fields))
end

-- Write the ends of this call: counters, reasons, and one outbox record. Batching matters: one command per
-- ticket would cost more than the rest of the script.
local function write_ends(now, id, epoch)
  if #ended_events == 0 then return end
  allow_oom(ITEM)
  redis.call('ZADD', ENDED, unpack(ended_index))
  redis.call('PEXPIRE', ENDED, 2 * ENDED_RETENTION_MS)
  redis.call('HINCRBY', LINE, 'ended', #ended_events)
  for reason, tickets in pairs(ended_by_reason) do
    redis.call('HINCRBY', LINE, 'ended:' .. reason, tickets)
  end
  write_record(now, id, epoch, #ended_events, 'c', table.concat(ended_events, ' '))
end

-- Write the admissions of this call: entries, counters, and one outbox record.
local function write_admissions(now, id, epoch)
  if #new_entries == 0 then return end
  local tickets = #new_entries / 2
  redis.call('HINCRBY', LINE, 'admitted', tickets)
  write_record(now, id, epoch, tickets, 'e', format_number(new_entries_expire_at), 'a', table.concat(new_entries, ' '))
  redis.call('INCRBY', OUTBOX_ADMISSIONS, tickets)
  write_entries(now)
end

-- Write the ends and admissions of this call. `epoch` is the term of a leader's script, absent otherwise.
local function commit(now, id, epoch)
  write_ends(now, id, epoch or '')
  write_admissions(now, id, epoch or '')
end
