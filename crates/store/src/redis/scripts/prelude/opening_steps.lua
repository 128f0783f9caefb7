-- The steps of the leader on an opening: whether one is due or ahead, and its event.

-- Return whether the leader must open the line now.
local function is_opening_due(item, now)
  local current = phase(item, now)
  return (current == 'scheduled' or current == 'lobby') and (tonumber(item.opensAt) or math.huge) <= now
end

-- Write the event of a line. `draw` is the text of a drawn cohort, or ''.
local function write_line_event(now, id, epoch, kind, draw)
  -- A release that does not count admissions may have left events: count all of them as admissions.
  redis.call('SET', OUTBOX_ADMISSIONS, redis.call('GET', OUTBOX_EVENTS) or '0', 'NX')
  redis.call('INCRBY', OUTBOX_EVENTS, 1)
  redis.call('XADD', OUTBOX, '*', 'i', id, 't', format_number(now), 'n', 1, 'p', epoch, 'l', kind, 'd', draw)
end
