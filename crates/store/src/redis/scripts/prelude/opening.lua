-- Openings: the phase of a line, and whether it opens or closes now or later. All take an item with the fields
-- opening, opensAt, lobbyAt, closesAt, openedAt and closedAt; items of earlier releases have none of them.

-- Return the phase of the line: 'scheduled', 'lobby', 'open' or 'closed'.
local function phase(item, now)
  if (item.opening or '') == '' then return 'open' end
  if (tonumber(item.closesAt) or math.huge) <= now then return 'closed' end
  if item.openedAt ~= '' then return 'open' end
  return (tonumber(item.lobbyAt) or 0) > now and 'scheduled' or 'lobby'
end
