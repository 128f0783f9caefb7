-- Use a handover code of a ticket.
-- KEYS: HANDOVER
-- ARGV: issued_at (ms) · ttl_ms
-- Reply: whether the code works: 1, or 0 if a code that was issued then or later was used
-- Atomic: of two devices that use a code together, one gets the ticket.
local used = tonumber(redis.call('GET', HANDOVER) or '-1')
if used >= tonumber(issued_at) then return 0 end
redis.call('SET', HANDOVER, issued_at, 'PX', ttl_ms)
return 1
