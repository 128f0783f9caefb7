-- Tickets that return after a missed turn.

-- Move a ticket that missed its turn to the returning ones, which are served before the line, and mark it as
-- seen.
local function return_to_line(user, number)
  delete_missed(user)
  redis.call('ZADD', RETURNING, number, user)
  mark_seen(number)
end
