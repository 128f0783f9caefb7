-- Restore the settings of an item from a record, if the store has older ones or none. The lines continue above
-- every number that may have been lost, and no new ticket is admitted before the recovery hold ends.
-- KEYS: line, then all lanes
-- ARGV: id · control_version (int) · now (int, ms) · recovery_hold (int, ms) · generation (known to the process) ·
--       new_id (for a partition that has none) · is_removed ('1' or '') · version (of the product service) ·
--       reveal · seed (of the draw, or '') · line_words (int, how many words of lines follow) · product_words
--       (int, how many words of the product service follow) · words.. (those: lane, valid_from, tail, lowest waiting
--       number or '', …; field, value, …; then the settings: field, value, …)
-- Reply: 1 if the record was newer than the stored settings, 0 otherwise
-- Atomic: an item is never visible without its settings.
local loss_until = check_generation(GENERATION, generation, new_id, now)
local stored = item_fields('controlVersion', 'version', 'removed', 'reveal', 'drawSeed', 'cohortServed', 'laneCount')
if tonumber(stored.controlVersion or '0') >= control_version then return 0 end
allow_oom(ITEM)

local exists, was_live = stored.version ~= false, stored.removed == '0'
-- A newer event of the product service decides about stock and removal.
local has_newer_event, is_live = exists and is_newer(stored.version, version), is_removed ~= '1'
if has_newer_event and is_live ~= was_live then
  redis.call('HSET', ITEM, 'controlVersion', format_number(control_version))
  return 1
end

-- Return the words of ARGV from `from` to `to`.
local function words(from, to) return {unpack(ARGV, from, to)} end
local lines = words(WORDS, WORDS + line_words - 1)
local product = words(WORDS + line_words, WORDS + line_words + product_words - 1)
local settings = words(WORDS + line_words + product_words, #ARGV)

local function set(key, fields)
  if #fields > 0 then redis.call('HSET', key, unpack(fields)) end
end

-- How many numbers a lobby may have issued since the record, also after an earlier restore from it.
local since_record = math.max(0, now - control_version) * LOBBY_NUMBERS_PER_MS % LOSS_GAP

-- Return what the record has of a lane: valid_from, tail, and the lowest waiting number or nil.
local function line_record(lane)
  for i = 1, #lines, 4 do
    if tonumber(lines[i]) == lane then return tonumber(lines[i + 1]), tonumber(lines[i + 2]), tonumber(lines[i + 3]) end
  end
  return 0, 0, nil
end

local valid_from, tail, first_number = line_record(0)
local clock = math.min(now * NUMBERS_PER_MS, MAX_NUMBER)

-- Return the fields of a line that begins at `base`.
local function new_line(base, first_valid)
  base = format_number(base)
  return {'base', base, 'tail', base, 'validFrom', format_number(first_valid), 'dropped', '0', 'lostFrom', '0',
    'takeBackUntil', '0', 'lostRangeUsedAt', '0', 'clockBase', '0', 'run', run_id()}
end

-- Continue the selected line, which has older data, above the recorded numbers.
local function continue_line(first_valid, last)
  local line = add_line_fields({}, {'validFrom', 'tail'})
  if first_valid > tonumber(line.validFrom) then
    restart_line()
    redis.call('HSET', LINE, 'validFrom', format_number(math.max(first_valid, tonumber(line.tail) + 1)))
  end
  local state = load_recovery_state(loss_until)
  advance_past_lost(state, math.max(last + since_record, state.tail), now, recovery_hold)
end

-- Restore the counters of the lanes besides the standard one.
local function restore_lanes()
  for i = 1, #lines, 4 do
    local lane = tonumber(lines[i])
    if lane > 0 then
      LANE = lane
      select_lane(lane)
      local first_valid, last = line_record(lane)
      if redis.call('EXISTS', LINE) == 1 then
        continue_line(first_valid, last)
      else
        set(LINE, new_line(math.max(clock, last + since_record + LOSS_GAP), first_valid))
        set(LINE, {'joined', '0', 'admitted', '0', 'ended', '0'})
        if lane > tonumber(redis.call('HGET', ITEM, 'laneCount') or '0') then
          redis.call('HSET', ITEM, 'laneCount', lane)
        end
      end
    end
  end
  LANE = 0
  select_lane(0)
end

-- Return whether users of the lobby hold numbers, so that the counter must not leave a large gap.
local function has_lobby()
  return first_number and phase(item_fields('opening', 'lobbyAt', 'closesAt', 'openedAt'), now) == 'lobby'
end

local function create()
  local old_tail = tonumber(redis.call('HGET', ITEM, 'tail') or '0')
  set(ITEM, {'removed', '0', 'updatedAt', format_number(now), 'recoveringUntil', '0',
    'behindUntil', format_number(now + recovery_hold), 'heldUntil', '0', 'stopped', '0', 'servableSince', '0',
    'cohortServed', '0'})
  set(ITEM, settings)
  local above = math.max(old_tail, tail + since_record) + LOSS_GAP
  set(LINE, new_line(has_lobby() and above or math.max(clock, above), valid_from))
  if not exists then set(ITEM, {'through', '0', 'joined', '0', 'admitted', '0', 'ended', '0'}) end
end

local function continue()
  -- Another draw was planned, which needed an empty line.
  local is_other_draw = (stored.reveal or '') ~= ''
    and (stored.reveal ~= reveal or ((stored.drawSeed or '') ~= '' and stored.drawSeed ~= seed))
  if is_other_draw then restart_line() end
  set(ITEM, settings)
  if seed == '' or stored.drawSeed ~= seed then redis.call('HSET', LINE, 'cohortServed', '0') end
  redis.call('HSET', ITEM, 'updatedAt', format_number(now))
  continue_line(valid_from, tail)
end

if not has_newer_event then set(ITEM, product) end
set(ITEM, {'id', id, 'controlVersion', format_number(control_version), 'controlTail', format_number(tail)})
-- The topic may end with an older record, which a compaction would keep.
if exists then redis.call('ZADD', CHANGED, control_version, id) end
if is_live then
  redis.call('HINCRBY', ITEM, 'revision', 1)
  if was_live then continue() else create() end
  redis.call('HSET', ITEM, 'lobbyFirst', has_lobby() and format_number(first_number) or '')
  if redis.call('HGET', ITEM, 'paused') == '1' then redis.call('HSET', ITEM, 'stopped', '1') end
  restore_lanes()
  redis.call('SADD', ITEMS, id)
  redis.call('SADD', ACTIVE, id)
elseif was_live then
  redis.call('HSET', ITEM, 'removed', '1')
  redis.call('SREM', ITEMS, id)
  restart_lines()
elseif not exists then
  set(ITEM, {'removed', '1', 'revision', '0', 'tail', format_number(tail), 'validFrom', format_number(valid_from),
    'dropped', '0', 'through', '0', 'joined', '0', 'admitted', '0', 'ended', '0'})
end
return 1
