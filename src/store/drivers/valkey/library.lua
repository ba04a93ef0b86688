#!lua name=belay6
-- revision 1
--
-- What the Valkey driver needs done at one moment: a plan (belay6_commit; belay6_enter, if there
-- is not much to it; belay6_commit_seen, if scans find what it says), and parts of rank
-- indexes (belay6_scan; belay6_pick, which also holds what it finds).  plan_args.c,
-- plan_scans.c and scan.c say what the arguments are; this file knows shapes and takes no
-- decision.
--
-- A number in Lua is a double.  Versions are compared as text, ranks are within 2^53, and
-- counters are added in two halves.  Text is never compared with `<`, which asks the
-- server's locale.

-- While the library is loaded there is nothing but `redis.register_function`: what the
-- functions use is looked up by the first call.
local call, try, spread, to_number, number
local find, sub, byte, gsub, format, gmatch, concat, type_of, unpacked, packed_up

local function look_up()
  call, try, spread, to_number, number =
    redis.call, redis.pcall, unpack, tonumber, struct.unpack
  find, sub, byte, gsub = string.find, string.sub, string.byte, string.gsub
  format, gmatch, concat = string.format, string.gmatch, table.concat
  type_of, unpacked, packed_up = type, cmsgpack.unpack, cmsgpack.pack
end

-- The arguments of a call, and how many there are: a few come as one, an array of texts
-- (vk_fcall).
local function taken_apart(args)
  if not call then
    look_up()
  end
  if not args[2] then
    args = unpacked(args[1])
  end
  return args, #args
end

local HALF = 10000000000

-- What a plan has beside rows and ranks: one entry of a log; anything; one item of a feed.
local APPEND, ALL, FEED = 1, 2, 3
-- Numbers of a plan's head; a first one of 255 says that those behind it have four bytes.
local HEAD, WIDE = 15, 255
-- A put has the arguments that the one before shares.
local AS_BEFORE = 255
-- How a scan is asked that must find something: nobody may hold what it finds; it may find more
-- behind that; by place, not by rank.
local UNHELD, FULL, BY_PLACE = 1, 2, 4
-- Members of a scan that are noted.
local NOTED = 8

-- --- numbers of 64 bits: high * HALF + low, 0 <= low < HALF ---

local function split(text)
  if not find(text, '^-?%d+$') then
    error('a counter holds something that is no number')
  end
  local minus = byte(text) == 45
  local high = to_number(sub(text, minus and 2 or 1, -11)) or 0
  local low = to_number(sub(text, minus and #text < 11 and 2 or -10))
  if not minus then
    return high, low
  end
  if low == 0 then
    return -high, 0
  end
  return -high - 1, HALF - low
end

local function join(high, low)
  local sign = ''
  if high < 0 then
    sign = '-'
    if low == 0 then
      high = -high
    else
      high, low = -high - 1, HALF - low
    end
  end
  if high == 0 then
    return sign .. format('%.0f', low)
  end
  return sign .. format('%.0f%010.0f', high, low)
end

local function is_less(a_high, a_low, b_high, b_low)
  return a_high < b_high or (a_high == b_high and a_low < b_low)
end

-- --- commit: what is checked ---

-- The members of a group of rank effects, and where they stand in the index.
local function scores_of(args, i, n_pairs, n_remove)
  if n_pairs == 0 then
    return call('ZMSCORE', args[i], spread(args, i + 3, i + 2 + n_remove))
  end
  local members, at = {}, i + 4
  for k = 1, n_pairs do
    members[k] = args[at]
    at = at + 2
  end
  at = at - 2
  for k = 1, n_remove do
    members[n_pairs + k] = args[at + k]
  end
  return call('ZMSCORE', args[i], spread(members))
end

-- Whether a member stands at a rank; the same number may be written in two ways.
local function stands_at(key, member, rank)
  local score = call('ZSCORE', key, member)
  return score and (score == rank or to_number(score) == to_number(rank))
end

-- Whether one of the single members that enter an index (key, rank, member) is there.
local function is_double(args, i, n)
  for k = i, i + 3 * n - 1, 3 do
    if call('ZSCORE', args[k], args[k + 2]) then
      return true
    end
  end
  return false
end

-- Of single effects on indexes: whether members that leave (key, rank, member) or move (key,
-- old rank, rank, member) stand where the plan says.  What scans have just found need not be
-- looked up: by member, in which index, and at which rank.
local function check_singles(args, i, n_remove, n_move, seen_in, seen_at)
  for k = i, i + 3 * n_remove - 1, 3 do
    local member = args[k + 2]
    if not (seen_in and seen_in[member] == args[k] and seen_at[member] == args[k + 1])
      and not stands_at(args[k], member, args[k + 1]) then
      return false
    end
  end
  i = i + 3 * n_remove
  for k = i, i + 4 * n_move - 1, 4 do
    if not stands_at(args[k], args[k + 3], args[k + 1]) then
      return false
    end
  end
  return true
end

-- Whether the members that enter an index are not there, and the others stand where the
-- plan says; and where the next group begins.
local function check_group(args, i)
  local n_add, n_move, n_remove = number('>HHH', args[i + 1])
  local n_pairs = n_add + n_move
  local n, ranks = n_pairs + n_remove, args[i + 2]
  local next_at = i + 3 + n + n_pairs
  local scores = scores_of(args, i, n_pairs, n_remove)
  for k = 1, n_add do
    if scores[k] then
      return next_at, false
    end
  end
  for k = n_add + 1, n do
    if not scores[k] then
      return next_at, false
    end
  end
  if n_add < n and concat(scores, ' ', n_add + 1) ~= ranks then
    local k = n_add -- the same number may be written in two ways
    for rank in gmatch(ranks, '%S+') do
      k = k + 1
      if to_number(scores[k]) ~= to_number(rank) then
        return next_at, false
      end
    end
  end
  return next_at, true
end

-- The id of the last entry of a stream; '' when there is none, or it need not be known.
local function tail_of(key, before)
  if before == '' then
    call('XLEN', key) -- only trimmed; it must be a stream
    return ''
  end
  local last = call('XREVRANGE', key, '+', '-', 'COUNT', '1')[1]
  return last and last[1] or ''
end

-- Whether a stream has no entry, or its last one is entry `before`, unless append_alone finds
-- it there: as many entries as the number says are all of them from the first, or some are
-- behind it.
local function may_follow(key, before)
  local n = call('XLEN', key)
  return n == 0 or n == to_number(before) or tail_of(key, before) == before .. '-1'
end

-- What is stored where a plan that is refused wants to change ranks and logs.
local function evidence(args, i, n_add, n_remove, n_move, n_group, rest)
  local scores, tails = {}, {}
  for k = 1, n_add + n_remove + n_move do
    local at_member = k > n_add + n_remove and 3 or 2
    scores[k] = { call('ZSCORE', args[i], args[i + at_member]) }
    i = i + at_member + 1
  end
  for k = #scores + 1, #scores + n_group do
    local n_adds, n_moves, n_removes = number('>HHH', args[i + 1])
    scores[k] = scores_of(args, i, n_adds + n_moves, n_removes)
    i = i + 3 + 2 * (n_adds + n_moves) + n_removes
  end
  if rest == APPEND then
    tails[1] = tail_of(args[i], args[i + 1])
  elseif rest == ALL then
    for k = 1, (number('>I4', args[i])) do
      tails[k] = tail_of(args[i + 2 * k - 1], args[i + 2 * k])
    end
  end
  return { 'shapes', scores, tails }
end

-- The values that counters get, by effect; or nil, and what is stored.
local function check_counters(args, i, n)
  local results, values, stored, good = {}, {}, {}, true
  for c = 1, n do
    local slot, adds = number('>I4B', args[i + 2])
    local old = values[slot]
    if not old and args[i + 3] ~= '' then
      old = args[i + 3] -- of a row that the plan inserts
    elseif not old then
      local found = call('HMGET', args[i], 'ver', args[i + 1])
      stored[slot] = found[1] and (found[2] or '0')
      old = stored[slot]
    end
    stored[c] = stored[slot] or false
    good = good and old
    if good then
      local high, low = split(old)
      local by_high, by_low = split(args[i + 4])
      if adds == 1 then
        high, low = high + by_high, low + by_low
        if low >= HALF then
          high, low = high + 1, low - HALF
        end
        local min_high, min_low = split(args[i + 5])
        local max_high, max_low = split(args[i + 6])
        good = not is_less(high, low, min_high, min_low)
          and not is_less(max_high, max_low, high, low)
      elseif is_less(high, low, by_high, by_low) then
        high, low = by_high, by_low
      end
      results[c] = join(high, low)
      values[slot] = results[c]
    end
    i = i + 7
  end
  return i, good and results, stored
end

-- --- commit: what is written; nothing here can be refused ---

local function unlink_rows(args, at, n)
  for first = at, at + n - 1, 1000 do
    local last = first + 999 < at + n and first + 999 or at + n - 1
    call('UNLINK', spread(args, first, last))
  end
end

-- Columns of n rows that become NULL.
local function clear_fields(args, i, n)
  for _ = 1, n do
    local last = i + 1 + args[i + 1]
    call('HDEL', args[i], spread(args, i + 2, last))
    i = last + 1
  end
end

-- Members that leave an index or move within it, one by one, then in groups.
local function write_ranks(args, i, n_remove, n_move, n_group)
  for k = i, i + 3 * n_remove - 1, 3 do
    call('ZREM', args[k], args[k + 2])
  end
  i = i + 3 * n_remove
  for k = i, i + 4 * n_move - 1, 4 do
    call('ZADD', args[k], args[k + 2], args[k + 3])
  end
  i = i + 4 * n_move
  for _ = 1, n_group do
    local n_add, n_moves, n_removes = number('>HHH', args[i + 1])
    local first = i + 3 + 2 * (n_add + n_moves)
    if n_removes > 0 then
      call('ZREM', args[i], spread(args, first, first + n_removes - 1))
    end
    if first > i + 3 then
      call('ZADD', args[i], spread(args, i + 3, first - 1))
    end
    i = first + n_removes
  end
end

local function trim_stream(key, upto)
  call('XTRIM', key, 'MINID', '=', upto)
  if call('XLEN', key) == 0 then
    call('UNLINK', key) -- so that any number may be the next first
  end
end

-- The position of an item; or nil, and an error, nothing being written.
local function append_to_feed(base, feed, data, epoch)
  local feeds, key = base .. ':feeds', base .. ':f:' .. feed
  local n = try('HINCRBY', feeds, feed, '1')
  if type_of(n) ~= 'number' then
    return nil, n
  end
  local got = try('XADD', key, epoch .. format('-%.0f', n), 'd', data)
  if type_of(got) == 'string' then
    return got
  end
  local last = try('XREVRANGE', key, '+', '-', 'COUNT', '1')
  if not last[1] then -- it is no stream
    if n == 1 then
      call('HDEL', feeds, feed)
    else
      call('HINCRBY', feeds, feed, '-1')
    end
    return nil, got
  end
  -- The epoch went back: positions do not.
  last = last[1][1]
  got = call('XADD', key, sub(last, 1, find(last, '-') - 1) .. '-*', 'd', data)
  call('HSET', feeds, feed, sub(got, find(got, '-') + 1, -1))
  return got
end

-- The one item of a plan that has nothing else beside rows and ranks: key of the row with the
-- epoch, "a", feed, data, "".  The epoch may be known already.
local function append_first(base, args, i, epoch)
  epoch = epoch or args[i] ~= '' and try('HGET', args[i], 'epoch') or '0'
  if type_of(epoch) ~= 'string' then
    return nil, epoch
  end
  return append_to_feed(base, args[i + 2], args[i + 3], epoch)
end

local function trim_feed(base, feed, upto, behind)
  local key = base .. ':f:' .. feed
  local last = call('XREVRANGE', key, upto, '-', 'COUNT', '1')[1]
  if last then
    call('HSET', base .. ':trimmed', feed, last[1])
    trim_stream(key, behind)
  end
end

local function write_feeds(base, args, i, n, results)
  local epoch = args[i] ~= '' and call('HGET', args[i], 'epoch') or '0'
  i = i + 1
  for _ = 1, n do
    if args[i] == 'a' then
      local position, failed = append_to_feed(base, args[i + 1], args[i + 2], epoch)
      results[#results + 1] = position or error(failed.err)
    else
      trim_feed(base, args[i + 1], args[i + 2], args[i + 3])
    end
    i = i + 4
  end
  return i
end

-- Everything of a plan behind its rows and ranks, from its entries on.
local function write_rest(base, args, i, n, results)
  for _ = 1, n.entry do
    if args[i + 2] ~= '' then
      trim_stream(args[i], args[i + 2])
    else
      call('XADD', args[i], args[i + 1], 'd', args[i + 3])
    end
    i = i + 4
  end
  for c = 1, n.counter do
    call('HSET', args[i], args[i + 1], results[c])
    i = i + 7
  end
  if n.feed > 0 then
    i = write_feeds(base, args, i, n.feed, results)
  end
  for _ = 1, n.chunk do
    if args[i] == 'p' then
      call('SET', args[i + 1], args[i + 2])
    else
      call('UNLINK', args[i + 1])
    end
    i = i + 3
  end
end

-- A hold is for speed only: whatever is in its way, the plan stands.
local function release(args, i, n)
  for _ = 1, n do
    local count = to_number(args[i])
    try('ZREM', spread(args, i - count - 1, i - 1))
    i = i - count - 2
  end
end

-- Checks what comes behind rows and ranks.  Returns the counts, the values of counters and
-- where the entries begin; or nil, and which refusal it is: of counters, or of shapes (nil).
local function check_rest(base, args, i)
  local n = {}
  local n_stream, gap
  n_stream, gap, n.entry, n.counter, n.feed, n.chunk = number('>I4BI4I4I4I4', args[i])
  if gap == 1 then
    return nil
  end
  i = i + 1
  for _ = 1, n_stream do
    local tail = tail_of(args[i], args[i + 1])
    if tail ~= '' and tail ~= args[i + 1] then
      return nil
    end
    i = i + 2
  end
  local entries_at, results, found = i, {}, nil
  i = i + 4 * n.entry
  if n.counter > 0 then
    i, results, found = check_counters(args, i, n.counter)
    if not results then
      return nil, { 'counters', found }
    end
  end
  if n.feed > 0 then -- they must be what they are taken for
    call('HLEN', base .. ':feeds')
    for k = 0, n.feed - 1 do
      call('XLEN', base .. ':f:' .. args[i + 2 + 4 * k])
      if args[i + 1 + 4 * k] == 't' then
        call('HLEN', base .. ':trimmed')
      end
    end
  end
  return n, results, entries_at
end

-- Which of n_new rows, whose keys begin at args[2], is there.
local function first_there(args, n_new)
  for g = 1, n_new do
    if call('HGET', args[1 + g], 'ver') then
      return g
    end
  end
end

-- The first of n guards, whose keys begin at args[first], that does not hold; nil: all do.
local function find_failed(args, first, n, n_old)
  for i = first, first + n - 1 do
    if (call('HGET', args[i], 'ver') or '0') ~= args[i + n_old] then
      return i - 1
    end
  end
  return nil
end

-- --- commit: what was checked by writing it is taken back, something being in the way ---

-- Rows that got the next version and nothing else.
local function lower(args, first, last)
  for i = first, last do
    call('HINCRBY', args[i], 'ver', '-1')
  end
end

-- Of those from args[first] on the one at args[i] was not as expected.  Returns the guard that
-- does not hold, or an error.
local function lower_from(args, first, i, got)
  lower(args, first, i - 1)
  if got == 1 then
    call('HDEL', args[i], 'ver') -- it had none
  elseif type_of(got) == 'number' then
    lower(args, i, i)
  end
  return type_of(got) == 'table' and got or i - 1
end

-- Single members that have entered an index: key, rank, member.
local function drop(args, i, last)
  for k = i, last, 3 do
    call('ZREM', args[k], args[k + 2])
  end
end

-- The one entry of a plan that has nothing else beside rows and ranks: key, number of the
-- entry before, id, data.  False: it is there, or one behind it.
local function append_alone(args, i)
  return type_of(try('XADD', args[i], args[i + 2], 'd', args[i + 3])) == 'string'
end

-- --- commit ---

-- The numbers of a plan's head.
local function numbers_of(head)
  if byte(head) == WIDE then
    return number('>I4I4I4I4I4I4I4I4I4I4I4I4I4I4I4', head, 2)
  end
  return byte(head, 1, HEAD)
end

-- 0: done.  { 'done', ... }: likewise, with the values of counters, then the positions in
-- feeds.  g > 0: guard g does not hold.  { 'shapes' or 'counters', ... }: refused, and what
-- is stored.
--
-- What every plan has is done here, in one piece, the rest by others: on a server that has slept
-- each function that is called costs as much as a command.
local function run(base, args, last_arg, seen_in, seen_at)
  local call, spread, head = call, spread, args[1]
  local wakes, n_hold, n_new, n_put, n_delete, n_guard, n_raise, n_null, nulls_at, adds_at,
    n_add, n_remove, n_move, n_group, rest = numbers_of(head)
  local n_look = n_put - n_new + n_delete + n_guard
  local n_old, raises_at = n_look + n_raise, 2 + n_new + n_look
  local removes_at = adds_at + 3 * n_add

  -- Keys begin at args[2]: of rows that must not be there, one question for many; then of those
  -- that are looked at, then raised, with the versions behind them.
  for first = 2, n_new + 1, 1000 do
    local last = first + 999 < n_new + 1 and first + 999 or n_new + 1
    if call('EXISTS', spread(args, first, last)) > 0 then
      return first_there(args, n_new)
    end
  end
  local epoch_key, epoch
  if rest == FEED and n_hold == 0 then
    epoch_key = args[last_arg - 2 * wakes - 4] -- its item comes last, but for the wake-up
  end
  for i = 2 + n_new, raises_at - 1 do
    local version
    if args[i] == epoch_key then
      local found = call('HMGET', epoch_key, 'ver', 'epoch')
      version, epoch = found[1], found[2]
    else
      version = call('HGET', args[i], 'ver')
    end
    if (version or '0') ~= args[i + n_old] then
      return i - 1
    end
  end
  local i, n, results, entries_at = removes_at, nil, nil, nil
  local has_more = n_remove + n_move + n_group + rest > 0
  if has_more then
    local good = check_singles(args, i, n_remove, n_move, seen_in, seen_at)
    i = i + 3 * n_remove + 4 * n_move
    for _ = 1, good and n_group or 0 do
      i, good = check_group(args, i)
      if not good then
        break
      end
    end
    if good and rest == APPEND then
      good = may_follow(args[i], args[i + 1])
    elseif good and rest == ALL then
      n, results, entries_at = check_rest(base, args, i)
      good = n ~= nil
    end
    if not good then
      return find_failed(args, raises_at, n_raise, n_old)
        or results and not is_double(args, adds_at, n_add) and results
        or evidence(args, adds_at, n_add, n_remove, n_move, n_group, rest)
    end
  end

  for k = raises_at, raises_at + n_raise - 1 do
    local got = try('HINCRBY', args[k], 'ver', '1')
    if got ~= args[k + n_old] + 1 then
      return lower_from(args, raises_at, k, got)
    end
  end
  local failed
  for k = adds_at, removes_at - 1, 3 do
    local got = try('ZADD', args[k], 'NX', args[k + 1], args[k + 2])
    if got ~= 1 then
      drop(args, adds_at, k - 1)
      failed = got -- 0: it is there; or an error
      break
    end
  end
  if not failed and rest == APPEND and not append_alone(args, i) then
    drop(args, adds_at, removes_at - 1)
    failed = 0
  end
  local position
  if not failed and rest == FEED then
    position, failed = append_first(base, args, i, epoch)
    if failed then
      drop(args, adds_at, removes_at - 1)
    end
  end
  if failed then
    lower(args, raises_at, raises_at + n_raise - 1)
    return failed ~= 0 and failed
      or evidence(args, adds_at, n_add, n_remove, n_move, n_group, rest)
  end

  -- Rows.  The head ends with two bytes for each: how many arguments it has (version, field,
  -- value ...), and how many more that the rows behind it share with it, or that it shares
  -- those of the row before.
  i = 2 + n_new + 2 * n_old
  local at, row, size = #head - 2 * n_put, nil, 0
  for g = 1, n_put do
    local own, common = byte(head, at + 1, at + 2)
    local last = i + own - 1
    at = at + 2
    if common == 0 then
      call('HSET', args[1 + g], 'ver', spread(args, i, last))
    else
      if common ~= AS_BEFORE then
        row, size = { 'HSET', '', 'ver', spread(args, i, last + common) }, 3 + own + common
        last = last + common
      end
      row[2] = args[1 + g]
      for k = 0, own - 1 do
        row[4 + k] = args[i + k]
      end
      call(spread(row, 1, size))
    end
    i = last + 1
  end
  if n_delete > 0 then
    unlink_rows(args, 2 + n_put, n_delete)
  end
  if n_null > 0 then
    clear_fields(args, nulls_at, n_null)
  end
  if has_more then
    write_ranks(args, removes_at, n_remove, n_move, n_group)
  end
  if n then
    write_rest(base, args, entries_at, n, results)
    if results[1] then
      return { 'done', results }
    end
  end
  return position and { 'done', { position } } or 0
end

-- The plan's arguments end at `last`.
local function commit(base, args, last, seen_in, seen_at)
  local answer = run(base, args, last, seen_in, seen_at)
  local wakes, n_hold = byte(args[1], 1, 2)
  if wakes == WIDE then
    wakes, n_hold = number('>I4I4', args[1], 2)
  end
  if wakes == 1 then
    last = last - 2
    if answer == 0 or (type_of(answer) == 'table' and answer[1] == 'done') then
      try('PUBLISH', args[last + 1], args[last + 2]) -- who may not goes without
    end
  end
  if n_hold > 0 then
    release(args, last, n_hold)
  end
  return answer
end

-- A plan of nothing but rows that come into being, rows that are raised, and members that enter
-- indexes one by one, with the arguments of commit.  It is commit in short, which a server that
-- has slept has read sooner; what does not fit is taken back and left to commit.
local function enter(base, args, last)
  local call, try, spread, head = call, try, spread, args[1]
  local wakes, _, n_new, n_put, _, _, n_raise, _, _, adds_at, n_add = byte(head, 1, HEAD)
  local at = 2 + n_new
  if n_new > 0 and call('EXISTS', spread(args, 2, at - 1)) > 0 then
    return commit(base, args, last)
  end
  for i = at, at + n_raise - 1 do
    local got = try('HINCRBY', args[i], 'ver', '1')
    if got ~= args[i + n_raise] + 1 then
      lower_from(args, at, i, got)
      return commit(base, args, last)
    end
  end
  for i = adds_at, adds_at + 3 * n_add - 1, 3 do
    if try('ZADD', args[i], 'NX', args[i + 1], args[i + 2]) ~= 1 then
      drop(args, adds_at, i - 1)
      lower(args, at, at + n_raise - 1)
      return commit(base, args, last)
    end
  end
  at = at + 2 * n_raise
  for g = 1, n_put do
    local next_at = at + byte(head, HEAD - 1 + 2 * g)
    call('HSET', args[1 + g], 'ver', spread(args, at, next_at - 1))
    at = next_at
  end
  if wakes == 1 then
    try('PUBLISH', args[last - 1], args[last])
  end
  return 0
end

-- --- scans ---

local function compare_bytes(a, b)
  if a == b then
    return 0
  end
  local n = #a < #b and #a or #b
  for k = 1, n do
    local x, y = byte(a, k), byte(b, k)
    if x ~= y then
      return x - y
    end
  end
  return #a - #b
end

-- How many members of an index come before (rank, member), and whether it is there.
local function place_of(key, rank, member)
  local place = call('ZRANK', key, member)
  if place and to_number(call('ZSCORE', key, member)) == to_number(rank) then
    return place, true
  end
  local low = call('ZCOUNT', key, '-inf', '(' .. rank)
  local high = call('ZCOUNT', key, '-inf', rank)
  while low < high do
    local middle = low + (high - low - (high - low) % 2) / 2
    if compare_bytes(call('ZRANGE', key, middle, middle)[1], member) < 0 then
      low = middle + 1
    else
      high = middle
    end
  end
  return low, false
end

-- The places of an index that a scan may show, in its own order: first <= last, or nothing.
-- Descending, places are counted from the end.
local function limits(key, s)
  local first, last = 0, call('ZCARD', key) - 1
  local card = last + 1
  if s.min ~= '-inf' then
    first = call('ZCOUNT', key, '-inf', '(' .. s.min)
  end
  if s.max ~= '+inf' then
    last = call('ZCOUNT', key, '-inf', s.max) - 1
  end
  if s.after_key and card > 0 then
    local place, there = place_of(key, s.after_rank, s.after_member)
    local order = compare_bytes(key, s.after_key)
    if not s.descending then
      if there and order <= 0 then
        place = place + 1
      end
      first = place > first and place or first
    else
      if not there or order >= 0 then
        place = place - 1
      end
      last = place < last and place or last
    end
  end
  if s.descending then
    return card - 1 - last, card - 1 - first
  end
  return first, last
end

-- Takes a page of an index: members and ranks; where others hold something, members alone,
-- since of those who are held nobody has to know the rank (a score is printed as a double).
local function take(x, got)
  x.members, x.ranks, x.n, x.at = {}, {}, 0, 1
  if not x.held then
    for k = 1, #got, 2 do
      x.n = x.n + 1
      x.members[x.n], x.ranks[x.n] = got[k], got[k + 1]
    end
    return
  end
  for k = 1, #got do
    if not x.held.by[got[k]] then
      x.n = x.n + 1
      x.members[x.n] = got[k]
    end
  end
  if x.n > 0 then
    x.ranks = call('ZMSCORE', x.key, spread(x.members))
  end
end

-- The next members of an index.
local function refill(x, s)
  if not x.first then -- only the first page was asked for, by rank
    x.first, x.last = limits(x.key, s)
    x.first = x.first + x.step
  end
  x.n = 0
  while x.n == 0 and x.first <= x.last do
    local last = x.first + x.step - 1
    last = last < x.last and last or x.last
    local command = s.descending and 'ZREVRANGE' or 'ZRANGE'
    if x.held then
      take(x, call(command, x.key, x.first, last))
    else
      take(x, call(command, x.key, x.first, last, 'WITHSCORES'))
    end
    x.first = last + 1
  end
end

-- The first members of a range of ranks, as the server gives them.
local function first_of(key, min, max, descending, limit)
  if descending then
    return call('ZRANGE', key, max, min, 'BYSCORE', 'REV', 'LIMIT', '0', limit,
      'WITHSCORES')
  end
  if min == '-inf' and max == '+inf' then
    return call('ZRANGE', key, '0', limit - 1, 'WITHSCORES')
  end
  return call('ZRANGE', key, min, max, 'BYSCORE', 'LIMIT', '0', limit, 'WITHSCORES')
end

-- Likewise, without their ranks.
local function first_members(key, min, max, descending, limit)
  if descending then
    return call('ZRANGE', key, max, min, 'BYSCORE', 'REV', 'LIMIT', '0', limit)
  end
  return call('ZRANGE', key, min, max, 'BYSCORE', 'LIMIT', '0', limit)
end

-- The first page of an index.
local function begin(x, s)
  if s.after_key then
    x.first, x.last = limits(x.key, s)
    refill(x, s)
    return
  end
  local first = x.held and first_members or first_of
  local got = first(x.key, s.min, s.max, s.descending, x.step)
  take(x, got)
  if #got < (x.held and 1 or 2) * x.step then
    x.first, x.last = 1, 0 -- there are no more
  elseif x.n == 0 then
    refill(x, s)
  end
end

-- Whether the head of index a comes before the head of index b, both not exhausted.
local function comes_first(a, b, descending)
  local x, y = to_number(a.ranks[a.at]), to_number(b.ranks[b.at])
  local order = x - y
  if order == 0 then
    order = compare_bytes(a.members[a.at], b.members[b.at])
  end
  if order == 0 then
    order = compare_bytes(a.key, b.key)
  end
  if descending then
    return order > 0
  end
  return order < 0
end

-- The index whose head is next, or nil.
local function next_index(indexes, n, descending)
  local least
  for k = 1, n do
    local x = indexes[k]
    if x.n > 0 and (not least or comes_first(x, least, descending)) then
      least = x
    end
  end
  return least
end

-- Which members are held by others than the attempt itself (by), and how many are held.
local function others(members, own)
  local held = { by = {}, n = #members }
  for k = 1, held.n do
    held.by[members[k]] = not (own and own[members[k]])
  end
  return held
end

-- An index, ready to give its members.  For a pick: lapsed holds are forgotten, what
-- others hold is stepped over.
local function open_index(key, number_of, s, now)
  local x = { key = key, number = number_of, step = s.step, n = 0 }
  if now then
    local hold_key = s.base .. ':h:' .. sub(key, #s.base + 4)
    x.taken, x.release = {}, hold_key
    if call('ZCARD', hold_key) > 0 then
      call('ZREMRANGEBYSCORE', hold_key, '-inf', now)
      x.held = others(call('ZRANGE', hold_key, '0', '-1'), s.own[number_of])
      x.step = x.step + x.held.n < 1000 and x.step + x.held.n or 1000
    end
  end
  begin(x, s)
  return x
end

local function hold(indexes, n, until_ms)
  for k = 1, n do
    local taken, list = indexes[k].taken, {}
    for j = 1, #taken do
      list[2 * j - 1], list[2 * j] = until_ms, taken[j]
      if #list == 2000 or j == #taken then
        call('ZADD', indexes[k].release, spread(list))
        list = {}
      end
    end
    if #taken > 0 then
      call('PEXPIREAT', indexes[k].release, until_ms)
    end
  end
end

-- The rows that a member names.  Of each fetch, args have what stands before the member in
-- its key, and whether that is text.
local function fetch(args, i, n_fetch, member, out, n)
  for k = n + 1, n + n_fetch do
    local name = member
    if args[i + 1] == 't' and find(member, '[%%:]') then
      name = gsub(gsub(member, '%%', '%%25'), ':', '%%3a')
    end
    out[k] = call('HGETALL', args[i] .. name)
    i = i + 2
  end
  return n + n_fetch
end

-- A scan of one index from one end of its range, holding nothing: one question.
local function scan_one(args, at, limit, descending, n_fetch)
  local key = args[at + 3 + 2 * n_fetch]
  local got = first_of(key, args[at + 1], args[at + 2], descending == 1, limit)
  if #got == 0 then
    return got
  end
  local out, n = {}, 0
  for k = 1, #got, 2 do
    out[n + 1], out[n + 2], out[n + 3] = 1, got[k], got[k + 1]
    n = fetch(args, at + 3, n_fetch, got[k], out, n + 3)
  end
  return out
end

-- The server's time, in ms.  Holds are for speed only: they are not worth a line of the log,
-- and its sync.
local function time_of(here)
  if not here.now then
    redis.set_repl(redis.REPL_NONE)
    local time = call('TIME')
    here.now = time[1] * 1000 + (time[2] - time[2] % 1000) / 1000
  end
  return here.now
end

-- Own holds of the attempt: by number of the index, the members; and where they end.
local function own_holds(args, i, n)
  local own = {}
  for _ = 1, n do
    local members = own[to_number(args[i])] or {}
    for k = 1, args[i + 1] do
      members[args[i + 1 + k]] = true
    end
    own[to_number(args[i])] = members
    i = i + 2 + args[i + 1]
  end
  return own, i
end

-- One scan, whose head is args[at]; `here` is what the scans of a call share.  Returns the
-- hits, one behind the other: number of the index, member, rank, rows; and where the next
-- scan begins.
local function scan(here, args, at)
  local n_index, limit, descending, has_after, n_fetch, hold_ms, n_own =
    number('>I4I4BBBI4I4', args[at])
  local fetches = has_after == 1 and at + 6 or at + 3
  local indexes_at = fetches + 2 * n_fetch
  local next_at = indexes_at + n_index
  if n_index == 1 and hold_ms == 0 and has_after == 0 then
    return scan_one(args, at, limit, descending, n_fetch), next_at
  end
  local s = { base = here.base, descending = descending == 1 }
  s.min, s.max = args[at + 1], args[at + 2]
  if has_after == 1 then
    s.after_rank, s.after_member, s.after_key = args[at + 3], args[at + 4], args[at + 5]
  end
  s.own, next_at = own_holds(args, next_at, n_own)
  s.step = n_index == 1 and limit or 64
  s.step = s.step < limit and s.step or limit
  s.step = s.step < 1000 and s.step or 1000
  local now, until_ms
  if hold_ms > 0 then
    now, until_ms = format('%.0f', time_of(here)), format('%.0f', time_of(here) + hold_ms)
  end
  local indexes = {}
  for k = 1, n_index do
    indexes[k] = open_index(args[indexes_at + k - 1], k, s, now)
  end
  local out, n = {}, 0
  for k = 1, limit do
    local x = next_index(indexes, n_index, s.descending)
    if not x then
      break
    end
    local member = x.members[x.at]
    out[n + 1], out[n + 2], out[n + 3] = x.number, member, x.ranks[x.at]
    n = fetch(args, fetches, n_fetch, member, out, n + 3)
    if now then
      x.taken[#x.taken + 1] = member
    end
    x.at = x.at + 1
    if x.at > x.n and k < limit then
      refill(x, s)
    end
  end
  if now then
    hold(indexes, n_index, until_ms)
  end
  return out, next_at
end

-- Scans, one behind the other: the hits of each, as one text, which the server has to say
-- sooner than its parts.
local function scan_all(keys, packed)
  local args = taken_apart(packed)
  local here, out, at, n = { base = keys[1] }, {}, 1, 0
  while args[at] do
    n = n + 1
    out[n], at = scan(here, args, at)
  end
  return packed_up(out)
end

-- --- commit: what scans must find ---

-- Whether (rank, member, key) comes before another one, which is text likewise.
local function is_before(a_rank, a_member, a_key, b_rank, b_member, b_key)
  local order = to_number(a_rank) - to_number(b_rank)
  if order == 0 then
    order = compare_bytes(a_member, b_member)
  end
  if order == 0 then
    order = compare_bytes(a_key, b_key)
  end
  return order < 0
end

-- Whether one of several indexes holds of a range what is expected of it (index number, member,
-- rank from args[at]; n in all, of which `count` are its own), and behind that nothing that the
-- scan would have found, unless it may find more.
local function index_stands(args, keys_at, number_of, at, n, count, full)
  local key = args[keys_at + number_of - 1]
  local got = first_of(key, args[keys_at - 2], args[keys_at - 1], false, count + 1)
  local k = 1
  for i = at, at + 3 * (n - 1), 3 do
    if to_number(args[i]) == number_of then
      local rank = got[k + 1]
      if got[k] ~= args[i + 1]
        or (rank ~= args[i + 2] and to_number(rank) ~= to_number(args[i + 2])) then
        return false
      end
      k = k + 2
    end
  end
  if not got[k] then
    return true
  end
  local last = at + 3 * (n - 1)
  return full
    and is_before(args[last + 2], args[last + 1], args[keys_at + args[last] - 1],
      got[k + 1], got[k], key)
end

-- How many of the members that are expected are of each index.
local function counts_of(args, at, n, n_index)
  local counts = {}
  for k = 1, n_index do
    counts[k] = 0
  end
  for i = at, at + 3 * (n - 1), 3 do
    local k = to_number(args[i])
    counts[k] = counts[k] + 1
  end
  return counts
end

local function indexes_stand(args, keys_at, n_index, n, full)
  local found_at = keys_at + n_index
  local counts = counts_of(args, found_at, n, n_index)
  for k = 1, n_index do
    if not index_stands(args, keys_at, k, found_at, n, counts[k], full) then
      return false
    end
  end
  return true
end

-- Whether anything of these indexes is held: whoever holds it is about to take it.
local function is_held(base, args, keys_at, n_index)
  local holds = {}
  for k = 1, n_index do
    holds[k] = base .. ':h:' .. sub(args[keys_at + k - 1], #base + 4)
  end
  return call('EXISTS', spread(holds)) > 0
end

-- Whether a scan of one index, args[at], finds the n members behind it (member, rank), and no
-- more; a few of them are noted.
local function one_stands(args, at, n, how, seen_in, seen_at)
  local key, got = args[at], nil
  if how >= BY_PLACE then
    got = call('ZRANGE', key, args[at - 2], args[at - 1], 'WITHSCORES')
  else
    got = first_of(key, args[at - 2], args[at - 1], false, n + 1)
  end
  for k = 1, 2 * n, 2 do
    local member, rank = args[at + k], args[at + k + 1]
    if got[k] ~= member
      or (got[k + 1] ~= rank and to_number(got[k + 1]) ~= to_number(rank)) then
      return false
    end
    if k < 2 * NOTED then
      seen_in[member], seen_at[member] = key, rank
    end
  end
  return how % BY_PLACE >= FULL or not got[2 * n + 1]
end

-- The numbers of a scan's head: indexes, members, how.
local function scan_of(head)
  if byte(head) == WIDE then
    return number('>I4I4I4', head, 2)
  end
  return byte(head, 1, 3)
end

-- -s: scan s finds something else than it is to find; or as commit.
local function commit_seen(base, args, last)
  local seen_in, seen_at = {}, {}
  local first = last - args[last]
  local at, s = first, 0
  while at < last do
    local n_index, n, how = scan_of(args[at])
    local keys_at, good = at + 3, true
    at, s = keys_at + n_index + 3 * n, s + 1
    if n == 0 then
      for k = keys_at, at - 1 do
        good = good and call('ZCOUNT', args[k], args[keys_at - 2], args[keys_at - 1]) == 0
      end
    elseif how % FULL == UNHELD and is_held(base, args, keys_at, n_index) then
      good = false
    elseif n_index == 1 then
      at = keys_at + 1 + 2 * n
      good = one_stands(args, keys_at, n, how, seen_in, seen_at)
    else
      good = indexes_stand(args, keys_at, n_index, n, how % BY_PLACE >= FULL)
    end
    if not good then
      return -s
    end
  end
  return commit(base, args, first - 1, seen_in, seen_at)
end

redis.register_function('belay6_commit', function(keys, packed)
  return commit(keys[1], taken_apart(packed))
end)
redis.register_function('belay6_enter', function(keys, packed)
  return enter(keys[1], taken_apart(packed))
end)
redis.register_function('belay6_commit_seen', function(keys, packed)
  return commit_seen(keys[1], taken_apart(packed))
end)
redis.register_function {
  function_name = 'belay6_scan',
  callback = scan_all,
  flags = { 'no-writes' },
}
redis.register_function('belay6_pick', scan_all)
