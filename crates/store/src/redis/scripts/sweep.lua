-- Removes people unseen for too long from the line.
-- KEYS[22..]: slices of liveness from ARGV[5] on, to the one after the current.
-- ARGV: 1 epoch · 2 now · 3 number to begin at · 4 most people to look at · 5 the first slice in KEYS
-- Reply: {abandoned, number to go on at, 0 at the end}, or {'slices', seconds} with nothing done,
--        if KEYS do not reach back far enough
if is_stale(ARGV[1]) then return STALE end
local now, cursor, chunk = tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
local item = item_fields('id', 'graceSeconds', 'missedKeepSeconds', 'removed', 'enabled', 'stock', 'paused',
  'tokensPerTick', 'recoveringUntil', 'behindUntil', 'heldUntil', 'stopped', 'servableSince')
local grace = tonumber(item.graceSeconds or '0')
if grace == 0 then return {0, 0} end

local limit = grace + tonumber(item.missedKeepSeconds)
-- Absence does not count while the line can admit no ticket, and from then on each user has the full time.
if item.stopped == '1' or is_stopped(item, now) or tonumber(item.heldUntil or '0') > now
  or now - tonumber(item.servableSince or '0') < limit * 1000 then
  return {0, 0}
end
local oldest = oldest_slice(now, limit)
if oldest < tonumber(ARGV[5]) then return {'slices', limit} end

local seen, _, fresh = seen_since(oldest, tonumber(ARGV[5]))
local people = redis.call('ZRANGEBYSCORE', WAITING, cursor, '+inf', 'WITHSCORES', 'LIMIT', 0, chunk)
local abandoned, next_cursor = 0, 0
for i = 1, #people, 2 do
  local user, number = people[i], tonumber(people[i + 1])
  if number >= fresh then
    next_cursor = 0
    break
  end
  next_cursor = number + 1
  if not seen(number) then
    depart(user, number)
    close(user, number, 'A', now)
    abandoned = abandoned + 1
  end
end
write_down(now, item.id, ARGV[1])
if #people < 2 * chunk then next_cursor = 0 end
return {abandoned, next_cursor}
