#!/usr/bin/perl
# Write the checksums of a directory's files into its SHA256SUMS.
#
# It runs at most once at a time, wherever it is started, and at most every ten minutes. The
# next start ends a run that has hung for an hour. With ADLOCK_STORE=etcd://... (and one
# ADLOCK_HOST) this holds for many machines. checksums.py has the same lock.
use strict;
use warnings;

# A lock of adlock's. This process owns it: when the process dies, the lock is free.
package Lock;

use IPC::Open2;

# new(NAME, OPTION...) takes the lock, or returns why not: the verdict is acquired, busy,
# too-soon, full or paused. Other errors go to standard error.
sub new {
    my ($class, $name, @options) = @_;
    my $self = bless {}, $class;
    my $owner = $$;    # a copy, as open2 reads its arguments after its fork
    $self->{pid} = open2($self->{from}, $self->{to}, 'adlock', 'hold', '--owner', $owner, @options, $name);
    my $line = readline $self->{from};
    ($self->{verdict}, $self->{more}) = split ' ', $line // '', 2;
    if (!grep { $_ eq ($self->{verdict} // '') } qw(acquired busy too-soon full paused)) {
        waitpid $self->{pid}, 0;
        exit($? >> 8 || 71);
    }
    return $self;
}

# release(STATUS) is false if the lock was lost meanwhile.
sub release {
    my ($self, $status) = @_;
    local $SIG{PIPE} = 'IGNORE';    # hold may be gone
    syswrite $self->{to}, "release $status\n";
    close $self->{to};
    my $said = readline $self->{from};
    waitpid $self->{pid}, 0;
    return ($said // '') eq "released\n";
}

package main;

use Cwd 'realpath';
use Digest::SHA;

my $directory = realpath($ARGV[0]);
my $lock = Lock->new("checksums $directory", '--if-elapsed', '10m', '--expire-after', '1h', '--retry-failed');
if ($lock->{verdict} ne 'acquired') {
    print "$lock->{verdict}: $lock->{more}";
    exit 0;
}
my $done = eval {
    my $lines = '';
    opendir my $list, $directory or die "$directory: $!\n";
    for my $name (sort grep { $_ ne 'SHA256SUMS' && !-d "$directory/$_" } readdir $list) {
        open my $file, '<:raw', "$directory/$name" or die "$name: $!\n";
        $lines .= Digest::SHA->new(256)->addfile($file)->hexdigest . "  $name\n";
    }
    open my $sums, '>', "$directory/SHA256SUMS" or die "SHA256SUMS: $!\n";
    print $sums $lines or die "SHA256SUMS: $!\n";
    close $sums or die "SHA256SUMS: $!\n";
};
my $why = $@;
my $held = $lock->release($done ? 0 : 1);
die $why if !$done;
die "lost\n" if !$held;
