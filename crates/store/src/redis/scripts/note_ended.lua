-- Record that tickets ended before the store lost data, as another source reports. A number that was
-- reclaimed since leaves the line without an event, because its end was published before. A ticket that was
-- admitted again stays as it is.
-- KEYS: line
-- ARGV: now (int, ms) · ended_tickets.. (user, number, reason, …)
-- Reply: 1, or 0 if the item is unknown
-- Atomic: a number is never both ended and in the line.
local has_line = begin_lane(now, true)
local item = load_recovery_state(0)
if not item.id or not has_line then return 0 end
allow_oom(ITEM)

local index, removed, removed_by_reason = {}, 0, {}
for i = ENDED_TICKETS, #ARGV, 3 do
  local user, number, reason = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2]
  if not end_reason_of(number) and parse_entry(redis.call('HGET', ENTERED, user)) ~= number then
    local n = format_number(number)
    if is_in_lost_range(item, number) then use_lost_range(item, now) end
    ended_in_call[n] = reason
    index[#index + 1] = now
    index[#index + 1] = n .. ':' .. reason
    if remove_from_line(user, number) then
      removed, removed_by_reason[reason] = removed + 1, (removed_by_reason[reason] or 0) + 1
    end
  end
end
if #index > 0 then
  redis.call('ZADD', ENDED, unpack(index))
  redis.call('PEXPIRE', ENDED, 2 * ENDED_RETENTION_MS)
end
if removed > 0 then
  redis.call('HINCRBY', LINE, 'ended', removed)
  for reason, tickets in pairs(removed_by_reason) do redis.call('HINCRBY', LINE, 'ended:' .. reason, tickets) end
end
return 1
