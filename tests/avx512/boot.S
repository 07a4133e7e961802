/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disk's first sector: to 32 bits, reads the files behind it to where they belong, and jumps into the kernel.
 * Linked to 0x7c00. What stands from COPIES on is written by emulator.py: copies of (first sector, chunks of 128
 * sectors, address), ended by one of no chunks; the address of struct hvm_start_info; where the kernel begins. Source:
 * Xen's PVH boot protocol, docs/misc/pvh.pandoc; the disk is read as ATA-1 does it, from port 0x1f0 on.
 */
#define COPIES 440
#define CHUNK 128

    .code16
    .globl _start
_start:
    cli
    xorw %ax, %ax
    movw %ax, %ds
    inb $0x92, %al /* address line 20 */
    orb $2, %al
    outb %al, $0x92
    lgdt table_at
    movl %cr0, %eax
    orb $1, %al
    movl %eax, %cr0
    ljmpl $8, $wide
    .code32
wide:
    movw $16, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    cld
    movl $copies, %ebp
copy:
    movl (%ebp), %ebx
    movl 8(%ebp), %edi
chunk:
    decl 4(%ebp)
    js next
    movw $0x1f2, %dx
    movb $CHUNK, %al
    outb %al, %dx
    movl %ebx, %eax
    incw %dx
    outb %al, %dx
    shrl $8, %eax
    incw %dx
    outb %al, %dx
    shrl $8, %eax
    incw %dx
    outb %al, %dx
    movb %ah, %al
    orb $0xe0, %al /* by sector numbers, first disk */
    incw %dx
    outb %al, %dx
    incw %dx
    movb $0x20, %al /* read */
    outb %al, %dx
    movl $CHUNK, %esi
sector:
    movw $0x1f7, %dx
1:  inb %dx, %al
    andb $0x88, %al
    cmpb $0x08, %al /* not busy, and data is there */
    jne 1b
    movw $0x1f0, %dx
    movl $128, %ecx
    rep insl
    decl %esi
    jnz sector
    addl $CHUNK, %ebx
    jmp chunk
next:
    addl $12, %ebp
    cmpl $0, 4(%ebp)
    jne copy
    movl start_at, %ebx
    jmp *entry_at
    .balign 8
table:
    .quad 0, 0x00cf9a000000ffff, 0x00cf92000000ffff /* none, code, data: all of 4 GiB */
table_at:
    .word table_at - table - 1
    .long table
    .org COPIES
copies:
    .org 502
start_at:
    .long 0
entry_at:
    .long 0
    .word 0xaa55
