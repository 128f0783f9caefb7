-- Fencing of the leader's scripts.

-- Return whether the epoch that leads this partition differs from `epoch`.
local function is_stale(epoch) return redis.call('GET', FENCE) ~= epoch end
local STALE = redis.error_reply('STALE another leader has taken over')
