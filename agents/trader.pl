#!/usr/bin/env perl
# A bot in Perl, without modules from outside: it walks to stations to visit and to towns to sell in.
#
#     tokaido evaluate "exec:perl agents/trader.pl" random --games 200 --move-seconds 1

use strict;
use warnings;
use JSON::PP;

$| = 1;    # flush each line

my %EFFECTS = (visit => 9, gift => 8, sell => 6, paint => 4, draw => 4, take => 2);
my %boards;    # by hash

while (my $line = <STDIN>) {
    my $message = decode_json($line);
    if ($message->{type} eq 'hello') {
        print encode_json({ protocol => 1 }), "\n";
    }
    elsif ($message->{type} eq 'board') {
        $boards{ $message->{board_hash} } = $message->{board};
    }
    elsif ($message->{type} eq 'decide') {
        print encode_json({ action => choose($message) }), "\n";
    }
}

# Return the legal label of the highest value, the first of equal ones.
sub choose {
    my ($message) = @_;
    my ($best, $most) = ('', -1);
    for my $label (@{ $message->{legal} }) {
        my $value = value($label, $message->{position}, $boards{ $message->{board_hash} });
        ($best, $most) = ($label, $value) if $value > $most;
    }
    return $best;
}

sub value {
    my ($label, $position, $board) = @_;
    my $me = $position->{players}[ $position->{player} ];
    my ($verb, $detail) = split /:/, $label;
    if ($verb eq 'pilgrim') {
        my $stations = $board->{ring}{stations};
        my $at = ($me->{pilgrim} + $position->{dice}{pilgrim}) % @$stations;
        return $stations->[$at] =~ /temple|garden|spring/ ? 5 : 1;
    }
    if ($verb eq 'merchant' && $detail =~ /^C/) {
        my ($ware, $price) = @{ $position->{boutiques}{$detail} };
        return $me->{wares}{$ware} * $price;    # the coins of a sale there
    }
    if ($verb eq 'merchant') {
        my $held = 0;
        $held += $_ for values %{ $me->{wares} };
        return $held < 3 ? 4 : 0;               # to draw wares in a mountain town
    }
    my $most_wares = $verb eq 'sell' ? $detail / 10 : 0;
    return ($EFFECTS{$verb} // 1) + $most_wares;
}
