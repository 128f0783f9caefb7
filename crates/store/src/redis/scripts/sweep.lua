-- End the waiting tickets of users who were absent for longer than the policy allows.
-- KEYS: line, then slices of liveness from first_slice to the one after the current
-- ARGV: epoch · now (int, ms) · cursor (number to begin at) · max_users (int, per call) · first_slice (int)
-- Reply: {abandoned, cursor of the next call, 0 at the end}, or {'slices', seconds} with nothing changed, if
--        KEYS do not reach back far enough
-- Atomic: a ticket is removed and its event written together; a stale epoch changes nothing.
if is_stale(epoch) then return STALE end
local item = item_fields('id', 'graceSeconds', 'missedKeepSeconds', 'removed', 'enabled', 'stock', 'paused',
  'tokensPerTick', 'recoveringUntil', 'behindUntil', 'heldUntil', 'stopped', 'servableSince',
  'opening', 'lobbyAt', 'closesAt', 'openedAt')
local grace = tonumber(item.graceSeconds or '0')
if grace == 0 then return {0, 0} end

local limit = grace + tonumber(item.missedKeepSeconds)
-- Absence does not count while the line can admit no ticket. After a stop each user has the full time again.
if item.stopped == '1' or is_stopped(item, now) or tonumber(item.heldUntil or '0') > now
  or now - tonumber(item.servableSince or '0') < limit * 1000 then
  return {0, 0}
end
local oldest = oldest_slice(now, limit)
if oldest < first_slice then return {'slices', limit} end

local is_present, _, recent = liveness_since(oldest, first_slice)
local tickets = redis.call('ZRANGEBYSCORE', WAITING, cursor, '+inf', 'WITHSCORES', 'LIMIT', 0, max_users)
local abandoned, next_cursor = 0, 0
for i = 1, #tickets, 2 do
  local user, number = tickets[i], tonumber(tickets[i + 1])
  if number >= recent then
    next_cursor = 0
    break
  end
  next_cursor = number + 1
  if not is_present(number) then
    remove_waiting(user, number)
    end_ticket(user, number, 'A', now)
    abandoned = abandoned + 1
  end
end
commit(now, item.id, epoch)
if #tickets < 2 * max_users then next_cursor = 0 end
return {abandoned, next_cursor}
