-- Remembers that tickets ended before the store lost data, as another source tells. A number that was
-- reclaimed meanwhile and waits leaves the line without an event, because its end was published before.
-- A ticket that was admitted again stays as it is.
-- ARGV: 1 now (ms) · 2.. user, number, reason, …
-- Reply: 1, or 0 if nothing is known of the item
-- Atomic: no call sees a number both ended and in the line.
local now = tonumber(ARGV[1])
if not redis.call('HGET', ITEM, 'id') then return 0 end
allow_oom(ITEM)

-- Take the number out of the line. Return whether it was there.
local function took_out(user, number)
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

local marks, left, left_for = {}, 0, {}
for i = 2, #ARGV, 3 do
  local user, number, reason = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2]
  if not ended(number) and parse_entry(redis.call('HGET', ENTERED, user)) ~= number then
    closed_now[txt(number)] = reason
    marks[#marks + 1] = now
    marks[#marks + 1] = txt(number) .. ':' .. reason
    if took_out(user, number) then
      left, left_for[reason] = left + 1, (left_for[reason] or 0) + 1
    end
  end
end
if #marks > 0 then
  redis.call('ZADD', CLOSED, unpack(marks))
  redis.call('PEXPIRE', CLOSED, 2 * CLOSED_KEEP_MS)
end
if left > 0 then
  redis.call('HINCRBY', ITEM, 'ended', left)
  for reason, tickets in pairs(left_for) do redis.call('HINCRBY', ITEM, 'ended:' .. reason, tickets) end
end
return 1
