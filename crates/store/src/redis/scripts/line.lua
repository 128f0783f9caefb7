-- The words every script of a line shares. Prepended to each of them, never run alone.
--
-- KEYS 1..21 are the line's keys in the order of keys.rs; KEYS 22.. are slices of liveness.
local ITEM, WAITING, RETURNING = KEYS[1], KEYS[2], KEYS[3]
local MISSED, MISSED_UNTIL, ENTERED, ENTERED_UNTIL = KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local DEPARTED, CLOSED, BIRTHS, RATE = KEYS[8], KEYS[9], KEYS[10], KEYS[11]
local ACTIVE, OUTBOX, OUTBOX_EVENTS, FENCE, ITEMS = KEYS[12], KEYS[13], KEYS[14], KEYS[15], KEYS[16]
local GENERATION, SETTINGS_COPY, OUTBOX_ADMISSIONS, LEAVES = KEYS[17], KEYS[18], KEYS[19], KEYS[20]
local LEFTOVER, SLICES = KEYS[21], 22

local PAGE = 8192
local SLICE_MS, SLICES_KEPT, UNSEEN_MS = 15000, 244, 360000
local BUCKET_MS, BUCKETS = 5000, 60
local CLOSED_KEEP_MS, LEAP, MAX_CLOCK_LAG_MS = 3600000, 1048576, 3600000
-- How long the end of a ticket that was never admitted is remembered, see early_from().
local WAITING_END_KEEP_MS = 600000
-- The most people of a group, see write_entries().
local GROUP = 100
-- How long a line is held because of a full outbox after the leader's last round, plus three ticks.
local HELD_MS = 10000

-- The named fields of the item as a table; absent ones are false.
local function item_fields(...)
  local values, item = redis.call('HMGET', ITEM, ...), {}
  for i, name in ipairs({...}) do item[name] = values[i] end
  return item
end

-- Ends come before admissions, so that a person whose old ticket ends and who is let in anew in
-- the same step is heard of in that order.
local closed, closed_marks, closed_for, closed_now = {}, {}, {}, {}
-- Who is let in: user, number as text, user, number, … All of a call have the same time.
local entering, entering_until = {}, nil

-- The lowest number whose end may be forgotten after WAITING_END_KEEP_MS; math.huge for none. A forgotten
-- end must never be reclaimed, so all numbers keep CLOSED_KEEP_MS that are in a lost range or may get
-- into one: up to the base, while a reclaim window is open, and as long as a loss may still widen the
-- range that begins with the line (see widens()). Later losses begin above all numbers given before.
local early_known
local function early_from(now)
  if not early_known then
    local base, window, lost_to, clock_base =
      unpack(redis.call('HMGET', ITEM, 'base', 'takeBackUntil', 'lostTo', 'clockBase'))
    if clock_base ~= base then lost_to = base end
    local widens_until = math.floor(tonumber(lost_to or '0') / 64) + CLOSED_KEEP_MS - TAKE_BACK_MS / 2
    local settled = now >= math.max(tonumber(window or '0'), widens_until)
    early_known = settled and tonumber(base or '0') + 1 or math.huge
  end
  return early_known
end

-- Ends a ticket that is nowhere any more. The score of an end that is remembered for a shorter time is
-- that much earlier, so that one rule forgets all of them.
local function close(user, number, reason, now, was_admitted)
  local n, at = txt(number), now
  local from_line = reason == 'A' or reason == 'R' or (reason == 'L' and not was_admitted)
  if from_line and number >= early_from(now) then at = now - CLOSED_KEEP_MS + WAITING_END_KEEP_MS end
  closed[#closed + 1] = user .. ' ' .. n .. ' ' .. reason
  closed_marks[#closed_marks + 1] = at
  closed_marks[#closed_marks + 1] = n .. ':' .. reason
  closed_for[reason] = (closed_for[reason] or 0) + 1
  closed_now[n] = reason
end

-- Lets a person in who is nowhere any more. The number is given as text, because formatting one costs
-- more than the rest of this.
local function enter(user, n, expires)
  entering[#entering + 1] = user
  entering[#entering + 1] = n
  entering_until = expires
end

-- Lets everybody in of whom ZPOPMIN told.
local function enter_all(people, expires)
  if #entering > 0 then
    for i = 1, #people, 2 do enter(people[i], people[i + 1], expires) end
  else
    entering, entering_until = people, expires
  end
end

-- How many are inside, those of this call included.
local function inside_count() return redis.call('HLEN', ENTERED) + #entering / 2 end

-- Writes who is inside and until when. The times are kept by group: people who are let in together
-- expire together, so that a hundred of them cost one element of a sorted set. Who leaves stays in the
-- group, and is passed over when its time has come. Numbers in `entering` become entries.
local function write_entries(now)
  local users, times = {}, ':' .. txt(now) .. ':' .. txt(entering_until)
  for i = 1, #entering, 2 do
    users[(i + 1) / 2] = entering[i]
    entering[i + 1] = entering[i + 1] .. times
  end
  redis.call('HSET', ENTERED, unpack(entering))
  for i = 1, #users, GROUP do
    local group = table.concat(users, ' ', i, math.min(i + GROUP - 1, #users))
    redis.call('ZADD', ENTERED_UNTIL, txt(entering_until), group)
  end
end

-- Writes what close() and enter() collected: entries, counters, memory of ends, the outbox. A command
-- for each person would cost more than all the rest. Events of a leader's script say in which term
-- they happened.
local function write_down(now, id, epoch)
  epoch = epoch or ''
  if #closed > 0 then allow_oom(ITEM) end
  if #closed + #entering > 0 then
    -- A release that does not count admissions may have left events: all of them count.
    redis.call('SET', OUTBOX_ADMISSIONS, redis.call('GET', OUTBOX_EVENTS) or '0', 'NX')
  end
  if #closed > 0 then
    redis.call('ZADD', CLOSED, unpack(closed_marks))
    redis.call('PEXPIRE', CLOSED, 2 * CLOSED_KEEP_MS)
    redis.call('HINCRBY', ITEM, 'ended', #closed)
    for reason, people in pairs(closed_for) do redis.call('HINCRBY', ITEM, 'ended:' .. reason, people) end
    redis.call('INCRBY', OUTBOX_EVENTS, #closed)
    redis.call('XADD', OUTBOX, '*', 'i', id, 't', txt(now), 'n', #closed, 'p', epoch,
      'c', table.concat(closed, ' '))
  end
  if #entering > 0 then
    local people, names = #entering / 2, table.concat(entering, ' ')
    write_entries(now)
    redis.call('HINCRBY', ITEM, 'admitted', people)
    redis.call('INCRBY', OUTBOX_EVENTS, people)
    redis.call('INCRBY', OUTBOX_ADMISSIONS, people)
    redis.call('XADD', OUTBOX, '*', 'i', id, 't', txt(now), 'n', people, 'p', epoch,
      'e', txt(entering_until), 'a', names)
  end
end

-- Return how many admissions the outbox holds. Never more than all its events, so that the count
-- recovers from a relay of a release that does not maintain it.
local function admissions_pending()
  local events, admissions = unpack(redis.call('MGET', OUTBOX_EVENTS, OUTBOX_ADMISSIONS))
  return math.max(0, math.min(tonumber(events or '0'), tonumber(admissions or events or '0')))
end

-- Return the global quota of a tick: the partition's copy, or `given` if there is none yet.
local function global_quota(given)
  return tonumber(redis.call('HGET', SETTINGS_COPY, 'tokenCountToMove') or given)
end

-- Count a leave against the limit of one user. The score is the time until which their leaves count:
-- each adds `cost` ms to it. Entries whose time is over are removed a few at a time.
local function count_leave(user, cost, window, now)
  if cost == 0 then return end
  local counted = tonumber(redis.call('ZSCORE', LEAVES, user) or '0')
  redis.call('ZADD', LEAVES, txt(math.max(counted, now) + cost), user)
  redis.call('PEXPIRE', LEAVES, txt(2 * window))
  local over = redis.call('ZRANGEBYSCORE', LEAVES, '-inf', now, 'LIMIT', 0, 10)
  if #over > 0 then redis.call('ZREM', LEAVES, unpack(over)) end
end

-- number, entered at, expires at of a person inside; nil if not.
local function parse_entry(text)
  if not text then return nil end
  local number, at, expires = string.match(text, '^(%d+):(%d+):(%d+)$')
  return tonumber(number), tonumber(at), tonumber(expires)
end

-- number, until of a person who missed their turn; nil if not.
local function parse_missed(text)
  if not text then return nil end
  local number, deadline = string.match(text, '^(%d+):(%d+)$')
  return tonumber(number), tonumber(deadline)
end

-- The lowest number waiting, or nil.
local function first_waiting()
  return tonumber(redis.call('ZRANGE', WAITING, 0, 0, 'WITHSCORES')[2])
end

-- The lowest number behind the base that waits, or nil.
local function first_behind(base)
  return tonumber(redis.call('ZRANGEBYSCORE', WAITING, '(' .. txt(base), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2])
end

-- Where the line's counter started, read once.
local base_known
local function base()
  base_known = base_known or tonumber(redis.call('HGET', ITEM, 'base') or '0')
  return base_known
end

-- Takes a person out of the line; a gap in its middle is written down. Below the base, so is one
-- at the front: a lower number may still come back, so that the front says nothing about it.
local function depart(user, number)
  redis.call('ZREM', WAITING, user)
  local first = first_waiting()
  if number <= base() or (first and first < number) then redis.call('RPUSH', DEPARTED, txt(number)) end
end

local function forget_missed(user)
  redis.call('HDEL', MISSED, user)
  redis.call('ZREM', MISSED_UNTIL, user)
end

local function forget_entry(user) redis.call('HDEL', ENTERED, user) end

-- Return whether the line can admit no ticket now, apart from a full outbox.
local function is_stopped(item, now)
  return item.removed ~= '0' or item.enabled ~= '1' or item.stock == '0' or item.paused == '1'
    or tonumber(item.recoveringUntil or '0') > now or tonumber(item.behindUntil or '0') > now
    or item.tokensPerTick == '0' or global_quota('1') == 0
end

-- Return whether a missed turn is over: its deadline has passed, and the line was able to admit for as long
-- as the user may take to return. Absence does not count while a line is stopped.
local missed_ends
local function is_missed_over(deadline, now)
  if deadline > now then return false end
  if missed_ends == nil then
    local item = item_fields('stopped', 'servableSince', 'missedKeepSeconds')
    local keep = tonumber(item.missedKeepSeconds or '0') * 1000
    missed_ends = item.stopped ~= '1' and tonumber(item.servableSince or '0') + keep <= now
  end
  return missed_ends
end

-- Keep the slot of an entry that its user gave back until the pass expires.
local function keep_slot(number, expires, now)
  redis.call('ZADD', LEFTOVER, txt(expires), txt(number))
  if redis.call('PTTL', LEFTOVER) < expires - now then redis.call('PEXPIRE', LEFTOVER, txt(expires - now)) end
end

-- Return how many slots are taken: entries, those of this call included, and entries given back whose
-- pass is still valid.
local function slots_taken(now)
  return inside_count() + redis.call('ZCOUNT', LEFTOVER, '(' .. txt(now), '+inf')
end

-- How many more may be inside.
local function room(item, inside)
  local most = math.huge
  if item.maxActive and item.maxActive ~= '' then most = tonumber(item.maxActive) - inside end
  if item.admitUpToStock == '1' then most = math.min(most, tonumber(item.stock) - inside) end
  return math.max(most, 0)
end

-- Counts people who left the front of the line.
local function moved(people, now)
  local bucket = math.floor(now / BUCKET_MS)
  redis.call('HINCRBY', RATE, txt(bucket), people)
  if redis.call('HLEN', RATE) > BUCKETS then
    for _, at in ipairs(redis.call('HKEYS', RATE)) do
      if tonumber(at) + BUCKETS < bucket then redis.call('HDEL', RATE, at) end
    end
  end
  -- When the line began to move, how many then, when it moved last, and how many since.
  local first_at, first, last_at, later =
    string.match(redis.call('HGET', ITEM, 'moves') or '', '^(%d+):(%d+):(%d+):(%d+)$')
  first_at, first, last_at, later = tonumber(first_at), tonumber(first), tonumber(last_at), tonumber(later)
  if not first_at or now < first_at or now - last_at > BUCKETS * BUCKET_MS then
    first_at, first, last_at, later = now, people, now, 0
  elseif now == first_at then
    first = first + people
  else
    last_at, later = math.max(last_at, now), later + people
  end
  redis.call('HSET', ITEM, 'moves', table.concat({txt(first_at), txt(first), txt(last_at), txt(later)}, ':'))
end

-- Whether this leader's term has ended.
local function is_stale(epoch) return redis.call('GET', FENCE) ~= epoch end
local STALE = redis.error_reply('STALE another leader has taken over')

-- Has the slice KEYS[22] live as long as anybody may look back to it: kept longer, the slices of an
-- hour would be a quarter of a line's memory. Never shorter than for the default policy, so that a
-- line finds what it needs when its policy looks back further, or at all, from now on.
local function keep_slice()
  local limits = redis.call('HMGET', ITEM, 'graceSeconds', 'missedKeepSeconds')
  local unseen = (tonumber(limits[1] or '0') + tonumber(limits[2] or '0')) * 1000
  redis.call('PEXPIRE', KEYS[SLICES], txt(math.max(unseen, UNSEEN_MS) + 2 * SLICE_MS))
end

-- Marks one number as seen in the slice KEYS[22].
local function mark(number)
  local page = math.floor(number / PAGE)
  local offset = number - page * PAGE
  local at, mask = math.floor(offset / 8) + 1, 2 ^ (offset % 8)
  local bits = redis.call('HGET', KEYS[SLICES], txt(page)) or ''
  if #bits < at then bits = bits .. string.rep('\0', at - #bits) end
  local byte = bit.bor(string.byte(bits, at), mask)
  bits = string.sub(bits, 1, at - 1) .. string.char(byte) .. string.sub(bits, at + 1)
  allow_oom(ITEM)
  redis.call('HSET', KEYS[SLICES], txt(page), bits)
  keep_slice()
end

-- A person who missed their turn comes back, ahead of the line.
local function come_back(user, number)
  forget_missed(user)
  redis.call('ZADD', RETURNING, number, user)
  mark(number)
end

-- The first number given within the last `seconds`; it and all later ones count as seen.
local function fresh_from(oldest)
  return tonumber(redis.call('ZRANGEBYSCORE', BIRTHS, oldest, '+inf', 'LIMIT', 0, 1)[1]) or math.huge
end

local function oldest_slice(now, seconds)
  return math.max(0, math.floor(math.max(0, now - seconds * 1000) / SLICE_MS))
end

-- Who was seen since slice `oldest`. KEYS[22] is the slice `first_key`, the keys after it are the
-- following slices. Returns a function that tells it of one number; one that tells whether all were
-- from one number to another, and rather says no than looks long; and from where on everybody counts as
-- seen.
local function seen_since(oldest, first_key)
  local fresh, pages = fresh_from(oldest), {}
  local function slices_of(page)
    if not pages[page] then
      local slices = {}
      for k = SLICES + oldest - first_key, #KEYS do
        slices[#slices + 1] = redis.call('HGET', KEYS[k], txt(page)) or nil
      end
      pages[page] = slices
    end
    return pages[page]
  end
  local function seen(number)
    if number >= fresh then return true end
    local page = math.floor(number / PAGE)
    local offset = number - page * PAGE
    local at, mask = math.floor(offset / 8) + 1, 2 ^ (offset % 8)
    for _, bits in ipairs(slices_of(page)) do
      local byte = string.byte(bits, at)
      if byte and bit.band(byte, mask) ~= 0 then return true end
    end
    return false
  end
  local function all_seen(first, last)
    if first >= fresh then return true end
    local page = math.floor(first / PAGE)
    if math.floor(last / PAGE) ~= page then return false end
    local slices, from, to = slices_of(page), first % PAGE, last % PAGE
    local first_at, last_at = math.floor(from / 8), math.floor(to / 8)
    for at = first_at, last_at do
      -- Numbers of a byte before the first and behind the last are not asked for.
      local byte = at == first_at and 2 ^ (from % 8) - 1 or 0
      if at == last_at then byte = bit.bor(byte, 256 - 2 ^ (to % 8 + 1)) end
      for _, bits in ipairs(slices) do byte = bit.bor(byte, string.byte(bits, at + 1) or 0) end
      if byte ~= 255 then return false end
    end
    return true
  end
  return seen, all_seen, fresh
end

-- How a number ended, as far as it is remembered.
local function ended(number)
  local n, reasons = txt(number), {'E', 'C', 'L', 'A', 'R'}
  if closed_now[n] then return closed_now[n] end
  local ends = redis.call('ZMSCORE', CLOSED, n .. ':E', n .. ':C', n .. ':L', n .. ':A', n .. ':R')
  for i, reason in ipairs(reasons) do
    if ends[i] then return reason end
  end
  return nil
end

-- The fields that tell what a line has lost. `loss_until`: until when a loss of the partition lets
-- numbers be reclaimed, as check_generation() returns it; read here if it is not given.
local function losses(loss_until)
  local numbers = {'validFrom', 'tail', 'base', 'lostFrom', 'lostTo', 'clockBase', 'takeBackUntil', 'recoveringUntil'}
  local item = item_fields('id', 'removed', 'run', unpack(numbers))
  for _, name in ipairs(numbers) do
    item[name] = tonumber(item[name] or '0')
  end
  -- lostTo counts only with the base that a clock advance wrote beside it. With any other base, the
  -- numbers up to the base may be lost.
  if item.clockBase ~= item.base then item.lostTo = item.base end
  item.lossUntil = loss_until or check_generation(GENERATION, '')
  return item
end

-- Whether a number may have been given before the store lost data.
local function may_be_lost(item, number) return item.lostFrom <= number and number <= item.lostTo end

-- Whether it is early enough after a loss to take people back.
local function takes_back(item, now) return now < math.max(item.takeBackUntil, item.lossUntil) end

-- Whether a process saw that the store lost data: another server goes on with the line, or the
-- partition's loss is recorded.
local function has_evidence(item, now) return now < item.lossUntil or item.run ~= server() end

-- Whether a person is somewhere where they need no number of old.
local function holds(user)
  return redis.call('HEXISTS', ENTERED, user) == 1 or redis.call('ZSCORE', RETURNING, user)
    or redis.call('HEXISTS', MISSED, user) == 1
end

-- Whether somebody waits with this number.
local function is_taken(number) return redis.call('ZCOUNT', WAITING, txt(number), txt(number)) > 0 end

-- Whether this number was lost and its holder is nowhere.
local function has_lost(item, user, number, now)
  return number >= item.validFrom and may_be_lost(item, number) and takes_back(item, now)
    and not ended(number) and not holds(user) and not redis.call('ZSCORE', WAITING, user)
    and not is_taken(number)
end

-- Whether a further loss widens the range of lost numbers instead of starting a new one: at least half
-- of the reclaim window remains. A loss of the partition counts only for a line that began around that
-- time, because the ends of all numbers in the range must still be remembered.
local function widens(item, now)
  local soon, remembered_until = now + TAKE_BACK_MS / 2, item.lostTo / 64 + CLOSED_KEEP_MS
  return soon < item.takeBackUntil or (soon < item.lossUntil and item.lossUntil <= remembered_until)
end

-- Continue the counter at `base`. All who wait are below the base afterwards; pods read that as the first
-- of the line's changes.
local function move_base(item, base)
  local frontier = first_behind(item.base)
  if frontier then redis.call('LPUSH', DEPARTED, '+' .. txt(frontier) .. ':' .. txt(item.tail)) end
  item.base, item.tail, base_known, early_known = base, base, base, nil
end

-- Goes on behind every number that may have been given, `given` among them.
local function lift(item, given, now, hold)
  if not widens(item, now) then
    item.lostFrom, item.takeBackUntil = item.tail + 1, now + TAKE_BACK_MS
  end
  -- Who was taken back already may be lost again: everybody has the whole time to come back anew.
  item.recoveringUntil = item.recoveringUntil > now and now + hold or 0
  allow_oom(ITEM)
  move_base(item, math.max(math.min(now * 64, HIGHEST), math.max(item.tail, given) + LEAP))
  item.lostTo = item.base
  redis.call('HSET', ITEM, 'base', txt(item.base), 'tail', txt(item.tail), 'lostFrom', txt(item.lostFrom),
    'takeBackUntil', txt(item.takeBackUntil), 'recoveringUntil', txt(item.recoveringUntil),
    'behindUntil', txt(now + hold), 'run', server())
end

-- Continue the counter at the clock if it is more than MAX_CLOCK_LAG_MS behind, so that a number tells
-- when it was given. Nothing was lost: the lost range stays as it is. Return the last number given.
local function follow_clock(tail, now)
  local base = math.min(now * 64, HIGHEST)
  if base - tail <= MAX_CLOCK_LAG_MS * 64 then return tail end
  local item = losses()
  move_base(item, base)
  redis.call('HSET', ITEM, 'base', txt(base), 'tail', txt(base), 'clockBase', txt(base), 'lostTo', txt(item.lostTo))
  return base
end

-- A line that another server has gone on with may have lost the newest numbers: what it gives next
-- must be behind them.
local function notice_loss(run, now, hold)
  if run == server() then return nil end
  local item = losses()
  lift(item, item.tail, now, hold)
  return item
end

-- Sends everybody who waits away; people inside stay.
local function restart()
  local item = item_fields('tail', 'dropped')
  local ended = redis.call('ZCARD', WAITING) + redis.call('ZCARD', RETURNING) + redis.call('HLEN', MISSED)
  allow_oom(ITEM)
  redis.call('HINCRBY', ITEM, 'ended', ended)
  redis.call('HSET', ITEM,
    'dropped', txt(tonumber(item.dropped) + redis.call('LLEN', DEPARTED)),
    'validFrom', txt(tonumber(item.tail) + 1), 'recoveringUntil', '0', 'behindUntil', '0')
  redis.call('UNLINK', WAITING, RETURNING, MISSED, MISSED_UNTIL, DEPARTED, BIRTHS)
end

-- Records that the item was changed at `now` (text), and returns it as HGETALL does.
local function touched(now)
  redis.call('HINCRBY', ITEM, 'revision', 1)
  redis.call('HSET', ITEM, 'updatedAt', now)
  return redis.call('HGETALL', ITEM)
end

local function is_there()
  return redis.call('HGET', ITEM, 'removed') == '0'
end
