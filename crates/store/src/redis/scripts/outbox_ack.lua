-- Removes published batches; removing one twice is harmless.
-- KEYS: 1 outbox · 2 count of events
-- ARGV: batch ids
-- Reply: number of events removed
local events = 0
for _, id in ipairs(ARGV) do
  local batch = redis.call('XRANGE', KEYS[1], id, id)[1]
  if batch then
    -- batch[2] is i, item, t, time, n, count, …
    events = events + tonumber(batch[2][6])
    redis.call('XDEL', KEYS[1], id)
  end
end
if events > 0 then redis.call('DECRBY', KEYS[2], events) end
return events
