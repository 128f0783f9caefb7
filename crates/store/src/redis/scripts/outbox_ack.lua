-- Removes published batches; removing one twice is harmless.
-- KEYS: 1 outbox · 2 count of events · 3 count of admissions among them
-- ARGV: batch ids
-- Reply: number of events removed
local events, admissions = 0, 0

local function is_admission(fields)
  for i = 1, #fields, 2 do
    if fields[i] == 'a' then return true end
  end
  return false
end

for _, id in ipairs(ARGV) do
  local batch = redis.call('XRANGE', KEYS[1], id, id)[1]
  if batch then
    -- batch[2] is i, item, t, time, n, count, …
    local count = tonumber(batch[2][6])
    events = events + count
    if is_admission(batch[2]) then admissions = admissions + count end
    redis.call('XDEL', KEYS[1], id)
  end
end
if events > 0 then
  redis.call('DECRBY', KEYS[2], events)
  -- Starting again from 0 with an empty outbox corrects what a release that does not count left over.
  local left = tonumber(redis.call('GET', KEYS[3]) or '0') - admissions
  if redis.call('XLEN', KEYS[1]) == 0 then left = 0 end
  redis.call('SET', KEYS[3], txt(math.max(0, left)))
end
return events
