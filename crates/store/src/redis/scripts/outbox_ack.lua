-- Remove published batches; a batch that was removed before is skipped.
-- KEYS: OUTBOX · OUTBOX_EVENTS · OUTBOX_ADMISSIONS
-- ARGV: batches.. (stream ids)
-- Reply: number of events removed
-- Atomic: batches are removed and the counts reduced together.
local events, admissions = 0, 0

local function is_admission(fields)
  for i = 1, #fields, 2 do
    if fields[i] == 'a' then return true end
  end
  return false
end

for i = BATCHES, #ARGV do
  local batch = redis.call('XRANGE', OUTBOX, ARGV[i], ARGV[i])[1]
  if batch then
    -- batch[2] is i, item, t, time, n, count, …
    local count = tonumber(batch[2][6])
    events = events + count
    if is_admission(batch[2]) then admissions = admissions + count end
    redis.call('XDEL', OUTBOX, ARGV[i])
  end
end
if events > 0 then
  redis.call('DECRBY', OUTBOX_EVENTS, events)
  -- An empty outbox resets the count, which corrects what a release that does not count admissions left.
  local left = tonumber(redis.call('GET', OUTBOX_ADMISSIONS) or '0') - admissions
  if redis.call('XLEN', OUTBOX) == 0 then left = 0 end
  redis.call('SET', OUTBOX_ADMISSIONS, format_number(math.max(0, left)))
end
return events
