-- Users who return after a missed turn.

-- Put a user who missed their turn into the returning tickets, which are served before the line.
local function return_to_line(user, number)
  delete_missed(user)
  redis.call('ZADD', RETURNING, number, user)
  mark_seen(number)
end
